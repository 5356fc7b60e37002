"""Reading of another program's model folder, whose files determine the importer."""

import re
from pathlib import Path

from t2t_repro.interop.formats.object_graph import SAVED_MODEL
from t2t_repro.interop.marian import importer as marian
from t2t_repro.interop.marian.transformers_vocabulary import CONFIG
from t2t_repro.interop.opennmt import importer as opennmt
from t2t_repro.interop.source import Source
from t2t_repro.interop.tensor2tensor import hparams as t2t_hparams
from t2t_repro.interop.tensor2tensor import importer as tensor2tensor
from t2t_repro.system.errors import UserError

_T2T_HPARAMS = "hparams.json"
# Flags of the import commands that name a folder, in messages of the importers.
_FLAGS = re.compile(r"--(folder|checkpoint)(?= )")


def read_folder(folder: Path, flag: str, vocab_file: Path | None = None) -> Source:
    """Reads and checks a model folder with the defaults of its import command.

    Args:
        folder: Folder of Marian (decoder.yml), Transformers (config.json), OpenNMT-tf
            (its checkpoint and configuration, or a SavedModel) or tensor2tensor
            (hparams.json, and the vocabulary unless `vocab_file` is given).
        flag: Flag with the folder, for messages.
        vocab_file: Vocabulary of tensor2tensor or of a SavedModel outside the folder.

    Raises:
        UserError: The folder is missing, its program is not recognized, or the importer
            rejects the model.
    """
    if not folder.is_dir():
        raise UserError(f"{flag} {folder}: no such folder")
    try:
        return _read(folder, flag, vocab_file)
    except UserError as error:
        raise UserError(_FLAGS.sub(flag, str(error))) from None


def _read(folder: Path, flag: str, vocab_file: Path | None) -> Source:
    if (folder / CONFIG).is_file() or any(folder.glob("*decoder.yml")):
        return marian.read(folder)
    if (folder / _T2T_HPARAMS).is_file():
        values = t2t_hparams.read_json(folder / _T2T_HPARAMS)
        vocabulary = vocab_file or _only_file(folder, flag, "*.subwords")
        return tensor2tensor.read(folder, values, vocabulary)
    if (folder / SAVED_MODEL).is_file():
        return opennmt.read(folder, vocab_file=str(vocab_file) if vocab_file else None)
    if any(folder.glob("*.index")):
        return opennmt.read(folder, [str(_only_file(folder, flag, "*.yml"))])
    raise UserError(
        f"{flag} {folder} is neither a model directory nor a checkpoint in one, nor a "
        "folder of Marian (decoder.yml), Transformers (config.json), OpenNMT-tf or "
        "tensor2tensor (hparams.json); import the model first, for example with "
        "python -m t2t_repro.import_marian, and give its model directory"
    )


def _only_file(folder: Path, flag: str, pattern: str) -> Path:
    """Returns the only file of a pattern; raises UserError for none or several."""
    files = sorted(folder.glob(pattern))
    if len(files) != 1:
        found = ", ".join(file.name for file in files) or "none"
        raise UserError(
            f"{flag} {folder}: expected one {pattern}, found {found}; import the model "
            "first, with python -m t2t_repro.import_t2t or import_opennmt, and give "
            "its model directory"
        )
    return files[0]
