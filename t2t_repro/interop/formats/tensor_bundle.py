"""TensorFlow's checkpoints: files of tensors by name, `PREFIX.index` and its data."""

import re
from collections.abc import Collection
from pathlib import Path

import tensorflow as tf

from t2t_repro.interop.formats.array_store import FLOATS, ArrayStore, some
from t2t_repro.runs.checkpoints import TensorFile
from t2t_repro.system.errors import UserError

_FILE_ENDING = re.compile(r"\.(index|meta|data-\d{5}-of-\d{5})$")


def open_bundle(prefix: Path, dtypes: Collection[str] = FLOATS) -> ArrayStore:
    """Opens a checkpoint by its prefix; UserError if it is missing or damaged."""
    file = TensorFile(prefix)
    return ArrayStore(prefix, file.shapes(), file.read, dtypes)


def find(path: Path) -> Path:
    """Returns the prefix of a checkpoint, given itself, one of its files or its folder.

    In a folder it is the one that the file `checkpoint` names, or else the only one.
    Raises UserError if there is none, or if there are several.
    """
    if not path.is_dir():
        prefix = path.with_name(_FILE_ENDING.sub("", path.name))
        if not Path(f"{prefix}.index").is_file():
            raise UserError(
                f"--checkpoint {path}: {prefix.name}.index does not exist; name a "
                "checkpoint's prefix, such as model.ckpt-250000, or its folder"
            )
        return prefix
    found = sorted(p.with_suffix("") for p in path.glob("*.index"))
    named = _newest(path)
    if named in found:
        return named
    if len(found) != 1:
        names = some([prefix.name for prefix in found]) or "no checkpoint"
        raise UserError(f"--checkpoint {path} holds {names}; name one by its prefix")
    return found[0]


def _newest(folder: Path) -> Path | None:
    """Returns the prefix that the folder's file `checkpoint` names, if it has one.

    Only its name counts: the folder may have been moved since.
    """
    if not (folder / "checkpoint").is_file():
        return None
    try:
        state = tf.train.get_checkpoint_state(str(folder))
    except (ValueError, tf.errors.OpError):  # A copy that was cut off, perhaps.
        return None
    return folder / Path(state.model_checkpoint_path).name if state else None
