"""Every trick: what `layers` and `models` compute, sooner.

`install` puts the tricks in the place of a few named formulas, for the whole process;
commands do so when they start. Without it everything works as it is written, slower.
Some have a form for each kind of device. Each has a test that compares it with its
formula.
"""

from typing import Any

from t2t_repro.system.dispatch import Dispatch


def kernels(device: str) -> list[tuple[Dispatch[..., Any], Any]]:
    """Returns each formula with what stands in for it on a "CPU" or a "GPU"."""
    from t2t_repro.decoding import candidates
    from t2t_repro.fast import (
        cached_decoder,
        cross_entropy,
        lanes,
        normalization,
        quantization,
        shared_trace,
        small_batch_matmul,
        top_k_of_chunks,
        xla_kernels,
    )
    from t2t_repro.fast import local_attention as fast_local_attention
    from t2t_repro.layers import dropout, functional, local_attention
    from t2t_repro.models import generate, halves

    on_both: list[tuple[Dispatch[..., Any], Any]] = [
        (functional.linear, small_batch_matmul.linear),
        (functional.tied_logits, small_batch_matmul.tied_logits),
        (functional.embedding_lookup, quantization.look_up),
        (functional.relu, quantization.rectified),
        (functional.apply_layers, shared_trace.apply_layers_once_traced),
        (local_attention.attend_locally, fast_local_attention.attend_locally),
        (generate.decoder_of, cached_decoder.KVCacheDecoder),
    ]
    if device == "GPU":
        # `generate` copies matrices for the cache of a processor, and `top_k` avoids a
        # slow kernel of the CPU: on a GPU they would only add reads and launches.
        return [
            *on_both,
            (functional.normalize, normalization.normalize_by_reductions),
            (functional.smoothed_cross_entropy, cross_entropy.by_comparison),
        ]
    return [
        *on_both,
        (small_batch_matmul.matmul, xla_kernels.matmul),
        (dropout.uniform, xla_kernels.uniform),
        (functional.normalize, normalization.normalize),
        (functional.smoothed_cross_entropy, cross_entropy.smoothed_cross_entropy),
        (generate.generate, cached_decoder.generate_prepacked),
        (halves.sum_over_halves, lanes.sum_in_lanes),
        (candidates.top_k, top_k_of_chunks.top_k),
    ]


def install(device: str | None = None) -> None:
    """Puts every trick in its place; backends but TensorFlow keep the formulas.

    Args:
        device: whose forms, "CPU" or "GPU"; None: a GPU's where TensorFlow finds one.
    """
    import keras

    if keras.backend.backend() != "tensorflow":
        return
    if device is None:
        import tensorflow as tf

        device = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    uninstall()
    for formula, trick in kernels(device):
        formula.implementation = trick


def uninstall() -> None:
    """Puts every formula back."""
    for formula, _ in kernels("CPU"):  # All that have a trick anywhere.
        formula.implementation = formula.reference
