"""Rows of the paper's table 3 and their changes to a base model of any size."""

from fractions import Fraction
from typing import NamedTuple

from t2t_repro import hparams
from t2t_repro.hparams import HParams
from t2t_repro.system.errors import UserError


class Paper(NamedTuple):
    """The paper's figures for a row (table 3, newstest2013).

    Attributes:
        perplexity: Perplexity per subword.
        bleu: BLEU of the last checkpoint.
        parameters: Number of parameters in millions; None if the paper does not list
            it.
    """

    perplexity: float
    bleu: float
    parameters: int | None = None


BASE = "base"
# Keyed by the name of the set in configs/.
ROWS = {
    BASE: Paper(4.92, 25.8, 65),
    "table3_a_h1": Paper(5.29, 24.9),
    "table3_a_h4": Paper(5.00, 25.5),
    "table3_a_h16": Paper(4.91, 25.8),
    "table3_a_h32": Paper(5.01, 25.4),
    "table3_b_dk16": Paper(5.16, 25.1, 58),
    "table3_b_dk32": Paper(5.01, 25.4, 60),
    "table3_c_n2": Paper(6.11, 23.7, 36),
    "table3_c_n4": Paper(5.19, 25.3, 50),
    "table3_c_n8": Paper(4.88, 25.5, 80),
    "table3_c_d256": Paper(5.75, 24.5, 28),
    "table3_c_d1024": Paper(4.66, 26.0, 168),
    "table3_c_ff1024": Paper(5.12, 25.4, 53),
    "table3_c_ff4096": Paper(4.75, 26.2, 90),
    "table3_d_dropout0": Paper(5.77, 24.6),
    "table3_d_dropout2": Paper(4.95, 25.5),
    "table3_d_smoothing0": Paper(4.67, 25.3),
    "table3_d_smoothing2": Paper(5.47, 25.7),
    "table3_e_learned": Paper(4.92, 25.7),
    "big": Paper(4.33, 26.4, 213),
}
# Hyper-parameters that a row scales in proportion to base; others are copied.
_SCALED = ("d_model", "d_ff", "num_heads", "num_layers", "train_steps", "d_k", "d_v")
# d_k and d_v may be None; these properties are not.
_SIZES = {"d_k": "key_size", "d_v": "value_size"}
_IGNORED = {"average_last"}


def changes(row: str, base: HParams) -> dict[str, object]:
    """Returns the hyper-parameters in which a row of `ROWS` differs from a base.

    Sizes keep their ratio to the paper's base: a row that halves d_ff does so at any
    d_ff. Raises UserError if a size is not an integer.
    """
    paper, other = hparams.load(BASE), hparams.load(row)
    changed: dict[str, object] = {}
    for key, value in other.to_dict().items():
        if value == getattr(paper, key) or key in _IGNORED:
            continue
        if key in _SCALED:
            size = _SIZES.get(key, key)
            ratio = Fraction(value, getattr(paper, size))
            changed[key] = _whole(row, key, ratio * getattr(base, size))
        else:
            changed[key] = value
    return changed


def _whole(row: str, key: str, size: Fraction) -> int:
    if size.denominator != 1 or size < 1:
        raise UserError(
            f"row {row}: {key} would be {float(size):g} with this base, but must be "
            "a positive whole number; choose --hparams with other sizes"
        )
    return int(size)
