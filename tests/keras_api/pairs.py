"""Random sentence pairs, a model for them, and its loss by hand."""

from typing import Any

import keras
import numpy as np

import t2t_repro

SIZES = {"d_model": 16, "num_layers": 1, "num_heads": 2, "d_ff": 32}


def sentences(rows: int, length: int, seed: int) -> np.ndarray:
    """Returns 0-padded sentences of 2 to ``length`` tokens that end in EOS."""
    rng = np.random.default_rng(seed)
    last, column = rng.integers(1, length, (rows, 1)), np.arange(length)
    ids = rng.integers(2, 20, (rows, length))
    ids = np.where(column == last, 1, np.where(column < last, ids, 0))
    return ids.astype("int32")


TARGETS = sentences(16, 6, 1)
PAIRS = {"inputs": sentences(16, 5, 0), "targets": TARGETS}


def small(**options: Any) -> keras.Model:
    return t2t_repro.Transformer(20, **(SIZES | options))


def built(**options: Any) -> keras.Model:
    """Returns a model with variables; a step that creates them is traced twice."""
    model = small(**options)
    model.build()
    return model


def compiled(
    model: keras.Model, learning_rate: float = 0.01, **options: Any
) -> keras.Model:
    loss = t2t_repro.losses.LabelSmoothedCrossEntropy()
    optimizer = keras.optimizers.Adam(learning_rate)
    if model.built:
        optimizer.build(model.trainable_variables)
    model.compile(optimizer, loss, **({"jit_compile": False} | options))
    return model


def by_hand(logits: Any, targets: np.ndarray, smoothing: float = 0.1) -> np.ndarray:
    """Returns the loss of each token in float64, and 0 for padding."""
    logits = np.array(logits, "float64")
    log_probs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    size = logits.shape[-1]
    soft = np.full(logits.shape, smoothing / (size - 1))
    np.put_along_axis(soft, targets[..., None], 1 - smoothing, axis=-1)
    entropy = np.log(np.where(soft > 0, soft, 1))
    return (soft * (entropy - log_probs)).sum(axis=-1) * (targets != 0)
