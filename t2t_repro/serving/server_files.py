"""Configuration files for TensorFlow Serving.

``models.config`` names the model, ``batching_parameters.txt`` configures the batching
of requests, and ``compose.yaml`` starts the server with `docker compose up`.
"""

import re
from pathlib import Path
from string import Template

from t2t_repro.system.atomic_file import write_text_atomically
from t2t_repro.system.errors import UserError

IMAGE = "tensorflow/serving:2.21.0"
"""Docker image, which must be at least as new as the exporting TensorFlow."""

MAX_BATCH_SIZE = 64
"""Maximum number of texts per batch of the server, and per request."""

BATCHING = "batching_parameters.txt"
"""File with the rules of merging requests."""

_CONFIG = "models.config"
_TEMPLATES = Path(__file__).with_name("templates")
FILES = {
    name: (_TEMPLATES / name).read_text(encoding="utf-8")
    for name in (_CONFIG, BATCHING, "compose.yaml")
}
"""Template of each file, with the variables `$name`, `$image` and `$max_batch_size`."""


def write_server_files(export_dir: Path, model_name: str) -> list[str]:
    """Writes missing files and keeps existing ones, which the user may have changed.

    Returns:
        The names of the existing files.

    Raises:
        UserError: An existing file names another model, or a file cannot be written.
    """
    existing = existing_files(export_dir, model_name)
    values = {"name": model_name, "image": IMAGE, "max_batch_size": MAX_BATCH_SIZE}
    for name, text in FILES.items():
        if name not in existing:
            write_text_atomically(export_dir / name, Template(text).substitute(values))
    return existing


def read_model_name(export_dir: Path) -> str:
    """Returns the name of the model in ``models.config``.

    Raises:
        UserError: The file is missing or names no model.
    """
    path = export_dir / _CONFIG
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; give --model_name") from None
    if match := re.search(r'^\s*name\s*:\s*"([^"]+)"', text, re.MULTILINE):
        return match[1]
    raise UserError(f"{path} names no model; give --model_name")


def pads_inputs(export_dir: Path) -> bool:
    """Returns whether the server merges requests with inputs of different lengths."""
    text = (export_dir / BATCHING).read_text(encoding="utf-8", errors="replace")
    return bool(re.search(r"^\s*pad_variable_length_inputs\s*:\s*true", text, re.M))


def existing_files(export_dir: Path, model_name: str) -> list[str]:
    """Returns the names of the existing files.

    Raises:
        UserError: A file names another model.
    """
    existing = [name for name in FILES if (export_dir / name).exists()]
    for name in existing:
        text = (export_dir / name).read_text(encoding="utf-8", errors="replace")
        names_model = re.search(rf"/models/{re.escape(model_name)}(?![\w.-])", text)
        if "$name" in FILES[name] and not names_model:
            raise UserError(
                f"{export_dir / name} does not name the model {model_name}; give the "
                "name in the file as --model_name, or delete the file to replace it"
            )
    return existing


def check_model_name(name: str) -> str:
    """Returns the name; raises UserError if it is not valid in a URL."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise UserError(
            f"--model_name {name} is not valid in a URL; use letters, digits, points, "
            "hyphens and underscores, and begin with a letter or digit"
        )
    return name


def default_model_name(model_dir: Path) -> str:
    """Returns the name of the model directory without special characters."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", model_dir.resolve().name)
    return name.lstrip("._-") or "model"
