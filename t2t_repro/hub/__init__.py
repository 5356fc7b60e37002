"""The Transformer as a keras-hub task, on every backend of Keras.

Importing this package registers its classes, so that
``keras_hub.models.Seq2SeqLM.from_preset`` can load the presets of
``export --format keras_hub``. Without the import, it raises a ValueError about a class
that is not registered. The import requires keras-hub.
"""

from t2t_repro.system.errors import UserError

try:
    import keras_hub  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "keras_hub":
        raise
    raise UserError(
        "t2t_repro.hub needs keras-hub, which is not installed; run pip install "
        "keras-nlp"
    ) from error

from t2t_repro.hub.backbone import TransformerBackbone
from t2t_repro.hub.preprocessor import TransformerSeq2SeqLMPreprocessor
from t2t_repro.hub.sampler import BeamSearchSampler
from t2t_repro.hub.task import TransformerSeq2SeqLM
from t2t_repro.hub.tokenizer import TransformerTokenizer

__all__ = [
    "BeamSearchSampler",
    "TransformerBackbone",
    "TransformerSeq2SeqLM",
    "TransformerSeq2SeqLMPreprocessor",
    "TransformerTokenizer",
]
