"""Access to TensorFlow checkpoints (`PREFIX.index` and its data files)."""

import re
from glob import escape
from pathlib import Path

import tensorflow as tf

from t2t_repro.interop.formats.array_store import ArrayStore, format_names
from t2t_repro.interop.formats.text import reject_pointer
from t2t_repro.runs.tensor_file import TensorFile
from t2t_repro.system.errors import UserError

_FILE_ENDING = re.compile(r"\.(index|meta|data-\d{5}-of-\d{5})$")


def open_bundle(prefix: Path) -> ArrayStore:
    """Opens the checkpoint with a prefix, its path without file extension.

    Raises:
        UserError: The checkpoint is missing or damaged.
    """
    for path in sorted(prefix.parent.glob(f"{escape(prefix.name)}.*")):
        reject_pointer(path)
    file = TensorFile(prefix)
    return ArrayStore(prefix, file.shapes(), file.read)


def find(path: Path) -> Path:
    """Returns the prefix of a checkpoint.

    Args:
        path: Prefix, file or folder of the checkpoint. In a folder, the file
            `checkpoint` selects one of several.

    Raises:
        UserError: The checkpoint is missing or ambiguous.
    """
    if not path.is_dir():
        prefix = path.with_name(_FILE_ENDING.sub("", path.name))
        if not Path(f"{prefix}.index").is_file():
            raise UserError(
                f"--checkpoint {path}: {prefix.name}.index does not exist; give a "
                "checkpoint's prefix, such as model.ckpt-250000, or its folder"
            )
        return prefix
    prefixes = sorted(p.with_suffix("") for p in path.glob("*.index"))
    newest = _newest(path)
    if newest in prefixes:
        return newest
    if len(prefixes) != 1:
        names = format_names([prefix.name for prefix in prefixes]) or "no checkpoint"
        raise UserError(
            f"--checkpoint {path} contains {names}; give the prefix of one checkpoint"
        )
    return prefixes[0]


def _newest(folder: Path) -> Path | None:
    """Returns the prefix named in the folder's file `checkpoint`, or None.

    The recorded folder is ignored, because the checkpoints may have been moved.
    """
    if not (folder / "checkpoint").is_file():
        return None
    try:
        state = tf.train.get_checkpoint_state(str(folder))
    except (ValueError, tf.errors.OpError):  # The file is damaged.
        return None
    return folder / Path(state.model_checkpoint_path).name if state else None
