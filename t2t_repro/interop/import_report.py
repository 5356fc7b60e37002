"""Report of an import as text and as JSON values."""

from dataclasses import asdict, dataclass
from typing import Any

from t2t_repro.interop.formats.array_store import some

_NAMES_LISTED = 8


@dataclass(frozen=True)
class ImportReport:
    """Results of importing another program's model.

    Attributes:
        model_dir: Path of the new model directory.
        program: Name of the program that wrote the files.
        weights_file: Path of the weight file.
        step: Training step of the weights.
        vocab_size: Number of subwords, including padding.
        target_vocab_size: Number of target subwords; None if both sides share a
            vocabulary.
        table_rows: Number of rows of the target embedding table.
        parameters: Number of trainable parameters.
        used: Number of imported arrays of the weights.
        unused: Names of unused arrays and settings by category.
        every_array: Whether all arrays of the file were imported.
        hparams: Hyper-parameters of the model and its search.
        source_lang: Code of the source language.
        target_lang: Code of the target language.
        pieces_known: For "source" and "target", the number of SentencePiece pieces in
            the vocabulary and the total number of pieces.
        adam: "imported", the reason why Adam starts with zero moments, or "" if the
            program never stores moments.
        notes: Additional lines for the text report.
    """

    model_dir: str
    program: str
    weights_file: str
    step: int
    vocab_size: int
    target_vocab_size: int | None
    table_rows: int
    parameters: int
    used: int
    unused: dict[str, list[str]]
    every_array: bool
    hparams: dict[str, Any]
    source_lang: str
    target_lang: str
    pieces_known: dict[str, tuple[int, int]]
    adam: str
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields by name."""
        return asdict(self)

    def text(self) -> str:
        """Returns the report as lines of text."""
        target = self.target_vocab_size
        padding = self.table_rows - (self.vocab_size if target is None else target)
        lines = [
            f"imported {self.weights_file} ({self.program}) into {self.model_dir}",
            (f"step {self.step:,}; " if self.adam else "")
            + f"{self.parameters:,} parameters in {self.used:,} arrays; "
            + f"{self.vocab_size:,} subwords"
            + ("" if target is None else f" of the source, {target:,} of the target")
            + (f" and {padding:,} rows of padding" if padding else ""),
            "the model: " + ", ".join(f"{k}={v}" for k, v in self.hparams.items()),
        ]
        if self.adam == "imported":
            lines.append("Adam's moments are imported: training resumes at this step")
        elif self.adam:
            lines.append(f"Adam will start with zero moments: {self.adam}")
        for kind, names in self.unused.items():
            if names:
                lines.append(f"not used, {kind}: {some(names, _NAMES_LISTED)}")
        for side, (known, pieces) in self.pieces_known.items():
            lines.append(
                f"{side}.spm: {known:,} of {pieces:,} pieces are in the vocabulary"
            )
        lines += self.notes
        every = "; every array is used" if self.every_array else ""
        lines.append(f"languages: {self.source_lang} to {self.target_lang}{every}")
        return "\n".join(lines)
