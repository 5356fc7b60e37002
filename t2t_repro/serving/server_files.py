"""What the stock TensorFlow Serving needs beside a model: three files.

``models.config`` names the model, ``batching_parameters.txt`` says how requests are
merged, ``compose.yaml`` starts the server: `docker compose up` in their folder.
"""

import re
from pathlib import Path
from string import Template

from t2t_repro.system.atomic_file import write_text_atomically
from t2t_repro.system.errors import UserError

IMAGE = "tensorflow/serving:2.21.0"
"""The newest that is published, as new as the TensorFlow that exports."""

MAX_BATCH_SIZE = 64
"""Texts that a server searches together, and the most of one request."""

_MODELS_CONFIG = """\
# Which models the server loads, and where it looks for their versions.
model_config_list {
  config {
    name: "$name"
    base_path: "/models/$name"
    model_platform: "tensorflow"
  }
}
"""

_BATCHING_PARAMETERS = """\
# How requests that come at the same time are merged. A larger request is refused.
max_batch_size { value: $max_batch_size }
# How long a request waits for others.
batch_timeout_micros { value: 5000 }
# Batches that wait before the server says that it is busy (UNAVAILABLE); the client
# comes back then.
max_enqueued_batches { value: 100 }
# Texts are strings, which are never padded.
pad_variable_length_inputs: false
"""

_COMPOSE = """\
# Starts TensorFlow Serving with the newest version in this folder:
#
#     docker compose up
#
# A version that is exported later replaces it while the server runs.
services:
  tensorflow-serving:
    image: $image
    # The server asks nobody who they are: it listens to this machine alone.
    ports:
      - "127.0.0.1:8500:8500" # gRPC
      - "127.0.0.1:8501:8501" # REST
    volumes:
      - .:/models/$name:ro
    command:
      - --model_config_file=/models/$name/models.config
      - --enable_batching=true
      - --batching_parameters_file=/models/$name/batching_parameters.txt
    restart: unless-stopped
"""

FILES = {
    "models.config": _MODELS_CONFIG,
    "batching_parameters.txt": _BATCHING_PARAMETERS,
    "compose.yaml": _COMPOSE,
}


def write_server_files(export_dir: Path, model_name: str) -> list[str]:
    """Writes the files that are missing; somebody may have changed the others.

    Returns:
        The names of the files that were kept as they are.

    Raises:
        UserError: a file that is kept names another model, or one cannot be written.
    """
    kept = kept_files(export_dir, model_name)
    for name, text in FILES.items():
        if name not in kept:
            values = {
                "name": model_name,
                "image": IMAGE,
                "max_batch_size": MAX_BATCH_SIZE,
            }
            write_text_atomically(export_dir / name, Template(text).substitute(values))
    return kept


def kept_files(export_dir: Path, model_name: str) -> list[str]:
    """Returns the files that are there; raises UserError if one names another model."""
    kept = [name for name in FILES if (export_dir / name).exists()]
    for name in kept:
        text = (export_dir / name).read_text(encoding="utf-8", errors="replace")
        named = re.search(rf"/models/{re.escape(model_name)}(?![\w.-])", text)
        if "$name" in FILES[name] and not named:
            raise UserError(
                f"{export_dir / name} serves a model of another name than "
                f"{model_name}; say --model_name with the name there, or delete the "
                "file to have it written anew"
            )
    return kept


def check_model_name(name: str) -> str:
    """Returns the name; raises UserError if it cannot stand in an address."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise UserError(
            f"--model_name {name}: it stands in addresses; use letters, digits, "
            "points, hyphens and underscores, the first a letter or digit"
        )
    return name


def default_model_name(model_dir: Path) -> str:
    """Makes a model's name of its folder's."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", model_dir.resolve().name)
    return name.lstrip("._-") or "model"
