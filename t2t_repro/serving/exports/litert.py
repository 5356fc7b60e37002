"""LiteRT model with a client, for phones and other small devices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.hparams.supported import Supported
from t2t_repro.serving.exports.export_format import ExportFormat, ExportOptions

if TYPE_CHECKING:
    from t2t_repro.translation.loading import Loaded


class LiteRT(ExportFormat):
    """LiteRT model, which its client searches with a fixed beam size and alpha."""

    name = "litert"
    file = "model.tflite"
    precisions = ("float32", "int8")
    flags = ("beam_size", "alpha", "max_input_length")
    supports_fast = False  # LiteRT lacks operations of the optimized implementations.

    @property
    def supported(self) -> Supported:
        """Hyper-parameters of the signatures and of the client."""
        from t2t_repro.serving.litert import SUPPORTED

        return SUPPORTED

    def write(self, loaded: Loaded, folder: Path, options: ExportOptions) -> None:
        """Writes the model, the settings of the search, the vocabulary and a client."""
        from t2t_repro.serving.litert import MAX_INPUT_LENGTH, write_litert

        write_litert(
            loaded.models[0],
            loaded.tokenizer,
            loaded.search(beam_size=options.beam_size, alpha=options.alpha),
            folder,
            options.precision,
            options.max_input_length or MAX_INPUT_LENGTH,
        )


LITERT = LiteRT()
