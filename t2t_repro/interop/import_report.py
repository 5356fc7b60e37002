"""The report of an import: for people as text, for programs as values."""

from dataclasses import asdict, dataclass
from typing import Any

from t2t_repro.interop.formats.array_store import some

_NAMES_LISTED = 8


@dataclass(frozen=True)
class ImportReport:
    """An import of another program's model.

    Attributes:
        model_dir: The model directory.
        program: Name of the program whose files they were.
        weights_file: The file of the weights.
        step: Number of updates done.
        vocab_size: Subwords of the vocabulary, padding included.
        target_vocab_size: Subwords of the target's own vocabulary, if it has one.
        table_rows: Rows of the target's embedding table.
        parameters: Number of trainable values.
        used: Number of arrays that became the model.
        unused: Names of unused arrays and settings, by kind.
        every_array: Whether all arrays of the file were used.
        hparams: Hyper-parameters of the model and its search.
        source_lang: Language of the sources.
        target_lang: Language of the targets.
        pieces_known: Side -> pieces of its SentencePiece model that the vocabulary
            has, and all of its pieces.
        adam: "imported", or the reason why Adam starts with zero moments, or "".
        notes: Further lines for people.
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
        """Describes the import for people."""
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
            lines.append("Adam's moments are imported: training goes on where it was")
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
