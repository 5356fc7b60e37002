"""Preset of keras-hub, for every backend of Keras."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.hparams.supported import Supported
from t2t_repro.serving.exports.export_format import ExportFormat, ExportOptions

if TYPE_CHECKING:
    from t2t_repro.translation.loading import Loaded

_USE = (
    "After `import t2t_repro.hub`, `keras_hub.models.Seq2SeqLM.from_preset(FOLDER)` "
    "loads the model with any backend of Keras. "
)


class KerasHub(ExportFormat):
    """Preset of `hub.TransformerSeq2SeqLM`, with the sampler that `compile` uses."""

    name = "keras_hub"
    file = "task.json"
    precisions = ("float32", "int8")
    flags = ("beam_size", "alpha", "max_input_length", "model_name", "licence")
    supports_fast = False  # A preset contains no graph.

    @property
    def supported(self) -> Supported:
        """Hyper-parameters of the backbone and the samplers."""
        from t2t_repro.hub.conversion import SUPPORTED

        return SUPPORTED

    def write(self, loaded: Loaded, folder: Path, options: ExportOptions) -> None:
        """Writes the preset and its model card."""
        from t2t_repro.hub import TransformerSeq2SeqLM
        from t2t_repro.serving.digests import MODEL_CARD
        from t2t_repro.serving.model_card import model_card
        from t2t_repro.translation.translator import MAX_INPUT_LENGTH

        longest = options.max_input_length or MAX_INPUT_LENGTH
        search = loaded.search(beam_size=options.beam_size, alpha=options.alpha)
        task = TransformerSeq2SeqLM.from_loaded(loaded, search, longest)
        if options.precision == "int8":
            with warnings.catch_warnings():
                # Keras warns about layers without matmuls.
                warnings.simplefilter("ignore", UserWarning)
                task.quantize("int8")
        task.save_to_preset(str(folder))
        card = model_card(loaded, search, options, longest, _USE)
        (folder / MODEL_CARD).write_text(card, encoding="utf-8")


KERAS_HUB = KerasHub()
