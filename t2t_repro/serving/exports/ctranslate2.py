"""CTranslate2 model, which translates subwords."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.hparams.supported import Supported
from t2t_repro.serving.exports.export_format import ExportFormat, ExportOptions

if TYPE_CHECKING:
    from t2t_repro.translation.loading import Loaded


class CTranslate2(ExportFormat):
    """CTranslate2 model; the settings of the search are given when it translates."""

    name = "ctranslate2"
    file = "model.bin"
    precisions = ("float32", "int8", "int16", "float16")

    @property
    def supported(self) -> Supported:
        """Hyper-parameters of CTranslate2's Transformer."""
        from t2t_repro.interop.ctranslate2 import SUPPORTED

        return SUPPORTED

    def write(self, loaded: Loaded, folder: Path, options: ExportOptions) -> None:
        """Writes the model and its vocabulary."""
        from t2t_repro.interop.ctranslate2 import write_ctranslate2

        model = loaded.models[0]
        write_ctranslate2(model, loaded.tokenizer, folder, options.precision)


CTRANSLATE2 = CTranslate2()
