"""Model folder of Hugging Face Transformers, for imported Marian models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.hparams.supported import Supported
from t2t_repro.serving.exports.export_format import ExportFormat, ExportOptions

if TYPE_CHECKING:
    from t2t_repro.translation.loading import Loaded


class Transformers(ExportFormat):
    """Folder that MarianMTModel, MarianTokenizer and `import_marian` read."""

    name = "transformers"
    file = "config.json"
    precisions = ("float32",)
    flags = ("beam_size", "alpha")

    @property
    def supported(self) -> Supported:
        """Hyper-parameters of MarianMTModel."""
        from t2t_repro.interop.marian.transformers_export import SUPPORTED

        return SUPPORTED

    def write(self, loaded: Loaded, folder: Path, options: ExportOptions) -> None:
        """Writes the weights, the vocabularies and the settings."""
        from t2t_repro.interop.marian.transformers_export import write_transformers

        search = loaded.search(beam_size=options.beam_size, alpha=options.alpha)
        provenance = loaded.model_dirs[0].provenance()
        languages = provenance.source_lang, provenance.target_lang
        model, tokenizer = loaded.models[0], loaded.tokenizer
        write_transformers(model, tokenizer, loaded.hparams, search, languages, folder)


TRANSFORMERS = Transformers()
