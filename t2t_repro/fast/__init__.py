"""Every trick: what `layers` and `models` compute, sooner.

`install` puts the tricks in the place of a few named formulas, for the whole process;
commands do so when they start. Without it everything works as it is written, slower.
Some have a form for each kind of device. Each has a test that compares it with its
formula.
"""

from typing import Any

from t2t_repro.system.formula import Formula


def tricks(device: str) -> list[tuple[Formula[..., Any], Any]]:
    """Returns each formula with what stands in for it on a "CPU" or a "GPU"."""
    from t2t_repro.decoding import top_k
    from t2t_repro.fast import (
        column_decoder,
        cross_entropy,
        eight_bits,
        few_rows,
        in_xla,
        normalization,
        top_k_of_chunks,
        traced_layers,
        windows,
    )
    from t2t_repro.layers import dropout, formulas, neighbourhood
    from t2t_repro.models import searching

    on_both: list[tuple[Formula[..., Any], Any]] = [
        (formulas.product, few_rows.product),
        (formulas.product_with_table, few_rows.product_with_table),
        (formulas.rows_of_table, eight_bits.look_up),
        (formulas.rectify, eight_bits.rectified),
        (formulas.one_after_another, traced_layers.traced_once),
        (neighbourhood.attend_nearby, windows.attend_nearby),
        (searching.decoder_of, column_decoder.ColumnDecoder),
    ]
    if device == "GPU":
        # `find` copies matrices for the cache of a processor, and `top_k` goes around
        # a slow kernel of the CPU: on a GPU they would be more to read and to launch.
        return [
            *on_both,
            (formulas.normalize, normalization.normalize_by_reductions),
            (formulas.smoothed_cross_entropy, cross_entropy.by_comparison),
        ]
    return [
        *on_both,
        (few_rows.matmul, in_xla.matmul),
        (dropout.uniform, in_xla.uniform),
        (formulas.normalize, normalization.normalize),
        (formulas.smoothed_cross_entropy, cross_entropy.smoothed_cross_entropy),
        (searching.find, column_decoder.find),
        (top_k.top_k, top_k_of_chunks.top_k),
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
    for formula, trick in tricks(device):
        formula.used = trick


def uninstall() -> None:
    """Puts every formula back."""
    for formula, _ in tricks("CPU"):  # All that have a trick anywhere.
        formula.used = formula.plain
