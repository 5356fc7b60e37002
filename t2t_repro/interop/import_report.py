"""Report of an import as text and as JSON values."""

from dataclasses import dataclass
from typing import Any

from t2t_repro.interop.formats.array_store import format_names
from t2t_repro.interop.source import Source

_NAMES_LISTED = 8


@dataclass(frozen=True)
class ImportReport:
    """Results of importing another program's model.

    Attributes:
        source: Imported model.
        model_dir: Path of the new model directory.
        languages: Codes of the source and target language.
        parameters: Number of trainable parameters.
        table_rows: Number of rows of the target embedding table.
    """

    source: Source
    model_dir: str
    languages: tuple[str, str]
    parameters: int
    table_rows: int

    @property
    def unused(self) -> dict[str, list[str]]:
        """Names of unused arrays and settings by category."""
        pairs = zip(self.source.languages, self.languages, strict=True)
        overridden = [file for file, used in pairs if file not in (None, used)]
        languages = {"languages of the files": overridden} if overridden else {}
        return self.source.unused | languages

    def to_dict(self) -> dict[str, Any]:
        """Returns all results by name."""
        source, (source_lang, target_lang) = self.source, self.languages
        return {
            "model_dir": self.model_dir,
            "program": source.program,
            "weights_file": str(source.weights_file),
            "step": source.step,
            "vocab_size": source.tokenizer.vocab_size,
            "target_vocab_size": source.tokenizer.target_vocab_size,
            "table_rows": self.table_rows,
            "parameters": self.parameters,
            "used": source.used,
            "unused": self.unused,
            "every_array": source.every_array,
            "hparams": source.described_hparams(),
            "source_lang": source_lang,
            "target_lang": target_lang,
            "pieces_known": source.pieces_known,
            "adam": source.adam,
            "notes": source.notes,
        }

    def text(self) -> str:
        """Returns the report as lines of text."""
        source, tokenizer = self.source, self.source.tokenizer
        target = tokenizer.target_vocab_size
        padding = self.table_rows - tokenizer.target.vocab_size
        hparams = source.described_hparams().items()
        lines = [
            f"imported {source.weights_file} ({source.program}) into {self.model_dir}",
            (f"step {source.step:,}; " if source.adam else "")
            + f"{self.parameters:,} parameters in {source.used:,} arrays; "
            + f"{tokenizer.vocab_size:,} subwords"
            + ("" if target is None else f" of the source, {target:,} of the target")
            + (f" and {padding:,} rows of padding" if padding else ""),
            "the model: " + ", ".join(f"{k}={v}" for k, v in hparams),
        ]
        if source.adam == "imported":
            lines.append("Adam's moments are imported: training resumes at this step")
        elif source.adam:
            lines.append(f"Adam will start with zero moments: {source.adam}")
        for kind, names in self.unused.items():
            if names:
                lines.append(f"not used, {kind}: {format_names(names, _NAMES_LISTED)}")
        for side, (known, pieces) in source.pieces_known.items():
            lines.append(
                f"{side}.spm: {known:,} of {pieces:,} pieces are in the vocabulary"
            )
        every = "; every array is used" if source.every_array else ""
        languages = " to ".join(self.languages)
        return "\n".join([*lines, *source.notes, f"languages: {languages}{every}"])
