"""Tests of reading, checking and rejecting the arrays of a weight file."""

from pathlib import Path

import numpy as np
import pytest

from t2t_repro.interop.formats.array_store import ArrayStore, format_names
from t2t_repro.system.errors import UserError

FILE = Path("model.npz")


def store(**arrays):
    return ArrayStore.from_arrays(FILE, arrays, ("float16", "float32"))


def test_take_returns_float32_and_counts_each_array_once():
    arrays = store(a=np.float16([[1.5, 2]]), b=np.float32([3]))
    array = arrays.take("a", None, 2)
    assert (array.dtype, array.tolist()) == (np.float32, [[1.5, 2]])
    assert arrays.take("a", 1, None).tolist() == [[1.5, 2]]
    assert (arrays.used, arrays.remaining) == (1, {"b": "b"})
    assert arrays.take_optional("c", 1) is None
    assert arrays.shape("b") == (1,) and arrays.shape("c") is None


def test_rejects_an_unused_array_by_name():
    arrays = store(b=np.float32(1), a=np.float32(1), position=np.float32(1))
    arrays.drop(["position"])
    with pytest.raises(UserError, match=r"^model\.npz: a does not belong to"):
        arrays.reject_remaining()
    for name in "ab":
        arrays.take(name)
    arrays.reject_remaining()


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("b", (), "lacks b"),
        ("a", (2,), r"the shape \(2, 3\), but the settings require \(2,\)"),
        ("a", (None, 4), r"the shape \(2, 3\), .* require \('any', 4\)"),
        ("double", (1,), "the dtype float64, but only float16 or float32 can"),
        ("number", (1,), "the dtype int8, but only"),
        ("nan", (2,), "contains infinity or NaN"),
    ],
)
def test_rejects_a_missing_or_unexpected_array(name, shape, message):
    arrays = store(
        a=np.zeros((2, 3), np.float32),
        double=np.zeros(1),
        number=np.zeros(1, np.int8),
        nan=np.float32([0, np.nan]),
    )
    with pytest.raises(UserError, match=message):
        arrays.take(name, *shape)
    assert arrays.used == 0


def test_some_abbreviates_a_long_list():
    assert format_names(["a", "b"], 2) == "a, b"
    assert format_names(range(1005), 2) == "0, 1 and 1,003 more"
