"""Files of a tensor2tensor training, written from golden vectors."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from t2t_repro.runs.tensor_file import write_tensors
from tests import golden

# The smallest valid vocabulary: the reserved pieces and the characters of escapes.
_FIRST = ["<pad>_", "<EOS>_", *"\\_u;0123456789"]


@dataclass(frozen=True)
class T2TRun:
    """Files of one training.

    Attributes:
        checkpoint: Prefix of the checkpoint.
        hparams_json: Path of the hyper-parameters.
        vocab_file: Path of the vocabulary.
    """

    checkpoint: Path
    hparams_json: Path
    vocab_file: Path

    def flags(self, model_dir: Path, **changes: object) -> list[str]:
        """Returns the flags of `import_t2t`; `changes` override them."""
        values = {
            "checkpoint": self.checkpoint,
            "hparams_json": self.hparams_json,
            "vocab_file": self.vocab_file,
            "model_dir": model_dir,
            **changes,
        }
        pairs = [(f"--{k}", str(v)) for k, v in values.items() if v is not None]
        return [word for pair in pairs for word in pair]


def write_vocabulary(path: Path, size: int) -> Path:
    """Writes a vocabulary of `size` pieces that do not occur in sentences."""
    pieces = [*_FIRST, *(f"q{number}_" for number in range(size - len(_FIRST)))]
    lines = "".join(f"'{piece}'\n" for piece in pieces)
    path.write_text(lines, encoding="utf-8")
    return path


def write_hparams(path: Path, arrays: dict[str, np.ndarray], **changes: Any) -> Path:
    """Writes the hparams.json of a golden case; `changes` override its values."""
    values = json.loads(str(arrays["hparams_json"])) | changes
    path.write_text(json.dumps(values), encoding="utf-8")
    return path


def write_run(folder: Path, arrays: dict[str, np.ndarray], vocab_size: int) -> T2TRun:
    """Writes the files of a golden case, with a checkpoint of step 150."""
    prefix = folder / "model.ckpt-150"
    variables = golden.t2t_variables(arrays)
    write_tensors(prefix, {**variables, "global_step": np.int64(150)})
    return T2TRun(
        prefix,
        write_hparams(folder / "hparams.json", arrays),
        write_vocabulary(folder / "vocab.subwords", vocab_size),
    )
