"""Golden vectors of tensor2tensor, and models with their weights."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from golden_checks.t2t_variables import assign_from_t2t, vocab_sizes

from t2t_repro.hparams import HParams
from t2t_repro.interop.tensor2tensor.hparams import translate_hparams
from t2t_repro.models.transformer import Transformer

# By default, GPUs since Ampere round the inputs of float32 matmuls to 10-bit
# mantissas.
tf.config.experimental.enable_tensor_float_32_execution(False)


def load(path: Path) -> dict[str, np.ndarray]:
    """Returns the arrays of an npz file by name."""
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def t2t_variables(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns tensor2tensor's variables of a case, without the prefix `var/`."""
    return {
        k.removeprefix("var/"): v for k, v in arrays.items() if k.startswith("var/")
    }


def hparams_of(arrays: dict[str, np.ndarray]) -> HParams:
    """Converts the tensor2tensor hparams of a case to `HParams` without dropout."""
    t2t: dict[str, Any] = json.loads(str(arrays["hparams_json"]))
    return translate_hparams(t2t, vocab_size=100).replace(
        dropout=0.0, attention_dropout=0.0, ffn_dropout=0.0, max_length=8
    )


def model_of(arrays: dict[str, np.ndarray], hparams: HParams) -> Transformer:
    """Builds the model of a case with tensor2tensor's weights."""
    variables = t2t_variables(arrays)
    hparams = hparams.replace(target_space_id=int(arrays["target_space_id"]))
    model = Transformer.from_hparams(hparams, *vocab_sizes(variables))
    model.build()
    assign_from_t2t(model, variables, hparams.norm)
    return model
