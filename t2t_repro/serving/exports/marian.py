"""Model folder of Marian, for models that were imported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.hparams.supported import Supported
from t2t_repro.serving.exports.export_format import ExportFormat, ExportOptions

if TYPE_CHECKING:
    from t2t_repro.translation.loading import Loaded


class Marian(ExportFormat):
    """Folder that marian-decoder and `import_marian` read."""

    name = "marian"
    file = "decoder.yml"
    precisions = ("float32",)
    flags = ("beam_size", "alpha")

    @property
    def supported(self) -> Supported:
        """Hyper-parameters of Marian's Transformer."""
        from t2t_repro.interop.marian.marian_export import SUPPORTED

        return SUPPORTED

    def write(self, loaded: Loaded, folder: Path, options: ExportOptions) -> None:
        """Writes the weights, the vocabularies and the settings of the search."""
        from t2t_repro.interop.marian.marian_export import write_marian

        search = loaded.search(beam_size=options.beam_size, alpha=options.alpha)
        model = loaded.models[0]
        write_marian(model, loaded.tokenizer, loaded.hparams, search, folder)


MARIAN = Marian()
