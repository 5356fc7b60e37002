"""What an import of another program's model says of it."""

from dataclasses import asdict, dataclass, field
from typing import Any

from t2t_repro.interop.tensor2tensor.checkpoint import some

_NAMES_TOLD = 8


@dataclass(frozen=True)
class ImportReport:
    """What was imported, and what was not."""

    model_dir: str  # The model directory.
    program: str  # Whose files they were.
    weights_file: str  # The file of weights.
    vocab_size: int  # Pieces of the vocabulary, with padding.
    target_vocab_size: int | None  # Of the target's own, if it has one.
    parameters: int  # Numbers in the model.
    used: int  # Arrays that became the model.
    unused: dict[str, list[str]]  # What is no part of the model, by kind.
    hparams: dict[str, Any]  # Of the model and its search, as the files say.
    source_lang: str  # Language of the sources.
    target_lang: str  # Language of the targets.
    # Side -> pieces of its SentencePiece model that the vocabulary has, and all.
    pieces_known: dict[str, tuple[int, int]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields by name."""
        return asdict(self)

    def text(self) -> str:
        """Describes the import for people."""
        target = self.target_vocab_size
        sizes = f"{self.vocab_size:,} pieces" + (
            "" if target is None else f" of the source, {target:,} of the target"
        )
        settings = ", ".join(f"{name}={value}" for name, value in self.hparams.items())
        lines = [
            f"imported {self.weights_file} ({self.program}) into {self.model_dir}",
            f"{self.parameters:,} parameters in {self.used:,} arrays; {sizes}",
            f"the model: {settings}",
        ]
        for kind, names in self.unused.items():
            if names:
                lines.append(f"not used, {kind}: {some(names, _NAMES_TOLD)}")
        for side, (known, pieces) in self.pieces_known.items():
            lines.append(
                f"{side}.spm: {known:,} of {pieces:,} pieces are in the vocabulary"
            )
        lines.append(
            f"languages: {self.source_lang} to {self.target_lang}; every array is used"
        )
        return "\n".join(lines)
