"""Golden vectors of the real tensor2tensor, and models made from them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from golden_checks.t2t_variables import assign_from_t2t, vocab_sizes

from t2t_repro.hparams import HParams
from t2t_repro.interop.tensor2tensor.hparams import to_hparams
from t2t_repro.models.transformer import Transformer

# Products of float32 are else rounded to ten bits on a GPU since Ampere.
tf.config.experimental.enable_tensor_float_32_execution(False)


def load(path: Path) -> dict[str, np.ndarray]:
    """Returns the arrays of an npz file by name."""
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def t2t_variables(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns tensor2tensor's variables of a case, without the `var/` before each."""
    return {
        k.removeprefix("var/"): v for k, v in arrays.items() if k.startswith("var/")
    }


def hparams_of(arrays: dict[str, np.ndarray]) -> HParams:
    """Translates the case's tensor2tensor hparams into ours, without dropout."""
    t2t: dict[str, Any] = json.loads(str(arrays["hparams_json"]))
    return to_hparams(t2t, vocab_size=100).replace(
        dropout=0.0, attention_dropout=0.0, ffn_dropout=0.0, max_length=8
    )


def model_of(arrays: dict[str, np.ndarray], hparams: HParams) -> Transformer:
    """Builds the model of a case with tensor2tensor's weights in it."""
    variables = t2t_variables(arrays)
    hparams = hparams.replace(target_space_id=int(arrays["target_space_id"]))
    model = Transformer.from_hparams(hparams, *vocab_sizes(variables))
    model.build()
    assign_from_t2t(model, variables, hparams.norm)
    return model
