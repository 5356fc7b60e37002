"""Every trick: what `layers` and `models` compute, sooner.

`install` puts the tricks in the place of a few named formulas, for the whole process;
commands do so when they start. Without it everything works as it is written, slower.
Each trick has a test that compares it with its formula.
"""

from typing import Any

from t2t_repro.system.formula import Formula


def tricks() -> list[tuple[Formula[..., Any], Any]]:
    """Returns each formula with what stands in for it."""
    from t2t_repro.decoding import top_k
    from t2t_repro.fast import (
        column_decoder,
        cross_entropy,
        few_rows,
        normalization,
        top_k_of_chunks,
        traced_layers,
        windows,
    )
    from t2t_repro.layers import formulas, neighbourhood
    from t2t_repro.models import searching

    return [
        (formulas.product, few_rows.product),
        (formulas.product_with_table, few_rows.product_with_table),
        (formulas.normalize, normalization.normalize),
        (formulas.smoothed_cross_entropy, cross_entropy.smoothed_cross_entropy),
        (formulas.one_after_another, traced_layers.traced_once),
        (neighbourhood.attend_nearby, windows.attend_nearby),
        (searching.decoder_of, column_decoder.ColumnDecoder),
        (searching.find, column_decoder.find),
        (top_k.top_k, top_k_of_chunks.top_k),
    ]


def install() -> None:
    """Puts every trick in its place; backends but TensorFlow keep the formulas."""
    import keras

    if keras.backend.backend() == "tensorflow":
        for formula, trick in tricks():
            formula.used = trick


def uninstall() -> None:
    """Puts every formula back."""
    for formula, _ in tricks():
        formula.used = formula.plain
