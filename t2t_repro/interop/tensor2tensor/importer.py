"""From a tensor2tensor checkpoint to a model directory, whole or not at all."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from t2t_repro.hparams import HParams
from t2t_repro.interop import into_model_dir
from t2t_repro.interop.tensor2tensor.checkpoint import (
    AdamState,
    Sorted,
    T2TCheckpoint,
    some,
)
from t2t_repro.interop.tensor2tensor.hparams import ignored, to_hparams
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables
from t2t_repro.runs.model_dir import build_model
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.word_piece_tokenizer import WordPieceTokenizer

_VOCABULARY_NAME = "vocab.subwords"
_NAMES_TOLD = 8


@dataclass(frozen=True)
class Source:
    """What tensor2tensor left of a model."""

    checkpoint: Path  # The checkpoint's prefix, or the folder that holds it.
    hparams: Mapping[str, Any]  # Its hyper-parameters by name.
    vocab_file: Path  # Its subwords.
    source_lang: str  # Language of the sources.
    target_lang: str  # Language of the targets.
    target_space_id: int = 0  # The target language's number (problem.py:SpaceID).


@dataclass(frozen=True)
class ImportReport:
    """What was imported, and what was not."""

    model_dir: str  # The model directory.
    checkpoint: str  # The prefix that was read.
    step: int  # Updates done.
    vocab_size: int  # Subwords of the vocabulary.
    table_rows: int  # Rows of the embedding tables, padding included.
    parameters: int  # Numbers in the model.
    used: int  # Variables of tensor2tensor that became the model.
    unused: dict[str, list[str]]  # The names of the others by kind.
    adam: str  # "imported", or why Adam starts with zero moments.
    tokens_per_batch: int  # Positions of a batch when it is trained on.
    ignored_hparams: dict[str, Any]  # Hyper-parameters that cannot change the model.

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields by name."""
        return asdict(self)

    def text(self) -> str:
        """Describes the import for people."""
        padded = self.table_rows - self.vocab_size
        lines = [
            f"imported {self.checkpoint} into {self.model_dir}",
            f"step {self.step:,}; {self.parameters:,} parameters in {self.used:,} "
            f"variables; {self.vocab_size:,} subwords"
            + (f" and {padded:,} rows of padding" if padded else ""),
        ]
        if self.adam == "imported":
            lines.append("Adam's moments are imported: training goes on where it was")
        else:
            lines.append(f"Adam will start with zero moments: {self.adam}")
        for kind, names in self.unused.items():
            lines.append(f"not used, {kind}: {some(names, _NAMES_TOLD)}")
        if not self.unused:
            lines.append("every variable is used")
        if self.ignored_hparams:
            lines.append(
                f"no part of the model: {some(self.ignored_hparams, _NAMES_TOLD)}"
            )
        lines.append(
            f"a batch is that of one GPU, {self.tokens_per_batch:,} positions a side: "
            "to train on as several did, set tokens_per_batch and "
            "max_tokens_per_device"
        )
        return "\n".join(lines)


def import_model(source: Source, model_dir: Path) -> ImportReport:
    """Makes a model directory, absent or empty before, of a tensor2tensor checkpoint.

    Everything is read and checked before anything is written; the directory is built
    aside and then renamed. UserError: it is in use, or the parts do not fit each other,
    are damaged, or are of a model that this package does not have.
    """
    into_model_dir.refuse_to_replace(model_dir)
    tokenizer = load_vocabulary(source.vocab_file)
    hparams = to_hparams(source.hparams, tokenizer.vocab_size, source.target_space_id)
    checkpoint = T2TCheckpoint(source.checkpoint)
    model = build_model(hparams, tokenizer.vocab_size)
    shapes = {name: tuple(v.shape) for name, v in named_variables(model).items()}
    checkpoint.check_tables(
        tokenizer.vocab_size, model.vocab_size, hparams.d_model, model.shared
    )
    names = checkpoint.sort(shapes, hparams.norm)
    weights = checkpoint.weights(shapes, hparams.norm)
    betas = {"beta1": hparams.adam_beta1, "beta2": hparams.adam_beta2}
    adam = checkpoint.adam(shapes, hparams.norm, betas)
    report = _report(source, model_dir, checkpoint, hparams, model, names, adam)
    into_model_dir.write(
        model_dir,
        hparams,
        tokenizer,
        (source.source_lang, source.target_lang),
        weights,
        adam.moments,
        {"imported_from": str(checkpoint.prefix), "adam": report.adam},
        checkpoint.step(),
    )
    return report


def load_vocabulary(path: Path) -> WordPieceTokenizer:
    """Reads tensor2tensor's subwords, kept as `vocab.subwords`, or UserError."""
    try:
        contents = path.read_bytes()
    except OSError as error:
        raise UserError(f"--vocab_file {path}: {error.strerror}") from None
    tokenizer = WordPieceTokenizer(contents, path)
    tokenizer.file_name = _VOCABULARY_NAME
    return tokenizer


def _report(
    source: Source,
    model_dir: Path,
    checkpoint: T2TCheckpoint,
    hparams: HParams,
    model: Transformer,
    names: Sorted,
    adam: AdamState,
) -> ImportReport:
    """Makes the report; moments that cannot be used are unused variables."""
    dropped = {"Adam's moments": names.slots} if adam.missing and names.slots else {}
    return ImportReport(
        model_dir=str(model_dir),
        checkpoint=str(checkpoint.prefix),
        step=checkpoint.step(),
        vocab_size=hparams.vocab_size,
        table_rows=model.vocab_size,
        parameters=sum(
            math.prod(variable.shape) for variable in named_variables(model).values()
        ),
        used=len(names.model),
        unused=dropped | names.unused,
        adam=adam.missing or "imported",
        tokens_per_batch=hparams.tokens_per_batch,
        ignored_hparams=ignored(source.hparams),
    )
