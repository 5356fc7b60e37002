"""The few places where the benchmarks reach inside of the model that they time."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_repro.fast.malloc import keep_freed_memory  # noqa: F401

# A step's products as the decoder makes them.
from t2t_repro.fast.small_batch_matmul import prepack  # noqa: F401
from t2t_repro.runs.model_dir import build_model as random_model  # noqa: F401


def next_symbol(model: Any) -> Callable[[Any, list[list[int]]], Any]:
    """Returns a built model as a plain search asks it, without caches.

    Source ids and beginnings of one length -> float32 (beginnings, V), the logits of
    the symbol that follows each.
    """
    last = tf.function(
        lambda inputs, targets: model({"inputs": inputs, "targets": targets})[:, -1],
        input_signature=[tf.TensorSpec([None, None], tf.int32)] * 2,
        autograph=False,
    )

    def logits(source: Any, beginnings: list[list[int]]) -> Any:
        # The last symbol is not read: the model shifts its targets right.
        targets = np.array([[*ids, 0] for ids in beginnings], np.int32)
        return last(np.tile(source, (len(targets), 1)), targets)

    return logits
