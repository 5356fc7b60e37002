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

_TEMPLATES = Path(__file__).with_name("templates")
FILES = {
    name: (_TEMPLATES / name).read_text(encoding="utf-8")
    for name in ("models.config", "batching_parameters.txt", "compose.yaml")
}
"""The text of each file by its name, with `$name`, `$image` and `$max_batch_size`."""


def write_server_files(export_dir: Path, model_name: str) -> list[str]:
    """Writes the files that are missing; somebody may have changed the others.

    Returns:
        The names of the files that were kept as they are.

    Raises:
        UserError: a file that is kept names another model, or one cannot be written.
    """
    kept = kept_files(export_dir, model_name)
    values = {"name": model_name, "image": IMAGE, "max_batch_size": MAX_BATCH_SIZE}
    for name, text in FILES.items():
        if name not in kept:
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
