"""Optimized implementations of functions in `layers`, `models` and `decoding`.

`install` lets the functions marked as `dispatched` run their optimized implementation,
for the whole process; commands call it when they start. Some functions have a different
one for each kind of device. A test compares each optimized implementation with the
reference implementation.
"""

import os
from collections.abc import Collection
from typing import Any, NamedTuple

from t2t_repro.system.dispatch import Dispatch
from t2t_repro.system.errors import UserError

FAST = "T2T_REPRO_FAST"
"""Environment variable; 0 disables all optimized implementations."""


NAMES = (
    *("shared_trace", "local_attention", "normalization", "cross_entropy"),
    *("chunked_loss", "lanes", "relu", "xla_matmul", "xla_dropout"),
    *("kv_cache", "prepacked_weights", "top_k"),
)
"""The names of the optimized implementations."""


class Kernel(NamedTuple):
    """An optimized implementation.

    Attributes:
        name: Name for ``install(without=...)``; several functions may share it.
        function: The dispatched function with the reference implementation.
        implementation: The function that runs instead of the reference.
    """

    name: str
    function: Dispatch[..., Any]
    implementation: Any


def kernels(device: str) -> list[Kernel]:
    """Returns the optimized implementations for a "CPU" or a "GPU"."""
    from t2t_repro.decoding import candidates
    from t2t_repro.fast import (
        cached_decoder,
        chunked_loss,
        cross_entropy,
        gpu_kernels,
        lanes,
        normalization,
        shared_trace,
        top_k_of_chunks,
        xla_kernels,
    )
    from t2t_repro.fast import local_attention as fast_local_attention
    from t2t_repro.layers import (
        feed_forward,
        functional,
        label_smoothing,
        local_attention,
        seeded_dropout,
    )
    from t2t_repro.models import generate, halves

    local = fast_local_attention.attend_locally
    loss = label_smoothing.smoothed_cross_entropy
    layers = functional.apply_layers
    on_both = [
        Kernel("local_attention", local_attention.attend_locally, local),
        Kernel("kv_cache", generate.make_decoder, cached_decoder.KVCacheDecoder),
    ]
    if device == "GPU":
        # `prepacked_weights` copies matrices for the cache of a CPU, and `top_k`
        # avoids a slow CPU kernel. On a GPU they would only add memory reads.
        in_chunks = chunked_loss.loss_in_chunks
        normalize = normalization.normalize_by_reductions
        return [
            *on_both,
            Kernel("shared_trace", layers, shared_trace.apply_layers_by_position),
            Kernel("relu", feed_forward.relu, gpu_kernels.relu),
            Kernel("xla_dropout", seeded_dropout.uniform, gpu_kernels.uniform),
            Kernel("normalization", functional.normalize, normalize),
            Kernel("cross_entropy", loss, cross_entropy.compare_with_labels),
            Kernel("chunked_loss", label_smoothing.loss_of_output, in_chunks),
        ]
    return [
        *on_both,
        Kernel("shared_trace", layers, shared_trace.apply_layers_once_traced),
        Kernel("xla_matmul", functional.linear, xla_kernels.linear),
        Kernel("xla_matmul", functional.tied_logits, xla_kernels.tied_logits),
        Kernel("xla_dropout", seeded_dropout.uniform, xla_kernels.uniform),
        Kernel("normalization", functional.normalize, normalization.normalize),
        Kernel("cross_entropy", loss, cross_entropy.smoothed_cross_entropy),
        Kernel(
            "prepacked_weights", generate.generate, cached_decoder.generate_prepacked
        ),
        Kernel("lanes", halves.sum_over_halves, lanes.sum_in_lanes),
        Kernel("top_k", candidates.top_k, top_k_of_chunks.top_k),
        Kernel("top_k", candidates.largest_log_prob, xla_kernels.largest_log_prob),
    ]


def install(device: str | None = None, without: Collection[str] = ()) -> None:
    """Switches functions to their optimized implementations.

    With ``T2T_REPRO_FAST=0`` in the environment, or with a Keras backend other than
    TensorFlow, every function runs its reference implementation.

    Args:
        device: Device that the implementations are optimized for, "CPU" or "GPU";
            None: "GPU" if TensorFlow finds one.
        without: Names of implementations that are not installed.

    Raises:
        UserError: A name in `without` is unknown.
    """
    import keras

    if keras.backend.backend() != "tensorflow":
        return
    uninstall()
    for name in set(without).difference(NAMES):
        raise UserError(
            f"no optimized implementation is called {name}; use one of "
            f"{', '.join(NAMES)}"
        )
    if os.environ.get(FAST) == "0":
        return
    if device is None:
        import tensorflow as tf

        device = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    for kernel in kernels(device):
        if kernel.name not in without:
            kernel.function.implementation = kernel.implementation


def uninstall() -> None:
    """Switches every function back to its reference implementation."""
    for kernel in (*kernels("CPU"), *kernels("GPU")):
        kernel.function.implementation = kernel.function.reference


def uses(name: str) -> bool:
    """Returns whether an optimized implementation, one of `NAMES`, is installed."""
    return any(
        kernel.function.implementation is kernel.implementation
        for kernel in (*kernels("CPU"), *kernels("GPU"))
        if kernel.name == name
    )


def is_installed() -> bool:
    """Returns whether any function runs an optimized implementation."""
    return any(map(uses, NAMES))
