"""Formats of exported models.

`FORMATS` contains one object per format, each from the module of its name. The modules
import TensorFlow only when a model is exported.
"""

from t2t_repro.serving.exports.ctranslate2 import CTRANSLATE2
from t2t_repro.serving.exports.export_format import ExportFormat
from t2t_repro.serving.exports.ids import IDS
from t2t_repro.serving.exports.keras_hub import KERAS_HUB
from t2t_repro.serving.exports.litert import LITERT
from t2t_repro.serving.exports.live_page import LIVE_PAGE
from t2t_repro.serving.exports.marian import MARIAN
from t2t_repro.serving.exports.saved_model import SAVED_MODEL
from t2t_repro.serving.exports.transformers import TRANSFORMERS

FORMATS: tuple[ExportFormat, ...] = (
    *(SAVED_MODEL, IDS, CTRANSLATE2, KERAS_HUB, LITERT, LIVE_PAGE),
    *(TRANSFORMERS, MARIAN),
)
