"""Every array of a file is taken, by name and shape, or refused."""

from pathlib import Path

import numpy as np
import pytest

from t2t_repro.interop.formats.array_store import ArrayStore, some
from t2t_repro.system.errors import UserError

FILE = Path("model.npz")


def store(**arrays):
    return ArrayStore.of_arrays(FILE, arrays, ("float16", "float32"))


def test_an_array_is_float32_and_counts_once():
    found = store(a=np.float16([[1.5, 2]]), b=np.float32([3]))
    array = found.take("a", None, 2)
    assert (array.dtype, array.tolist()) == (np.float32, [[1.5, 2]])
    assert found.take("a", 1, None).tolist() == [[1.5, 2]]
    assert (found.used, found.left) == (1, {"b": "b"})
    assert found.take_if_there("c", 1) is None
    assert found.shape("b") == (1,) and found.shape("c") is None


def test_an_array_that_nothing_takes_is_refused_by_name():
    found = store(b=np.float32(1), a=np.float32(1), position=np.float32(1))
    found.drop(["position"])
    with pytest.raises(UserError, match=r"^model\.npz: a is no part of"):
        found.refuse_left()
    for name in "ab":
        found.take(name)
    found.refuse_left()


@pytest.mark.parametrize(
    ("name", "shape", "words"),
    [
        ("b", (), "has no b"),
        ("a", (2,), r"the shape \(2, 3\), but the settings ask for \(2,\)"),
        ("a", (None, 4), r"the shape \(2, 3\), .* ask for \('any', 4\)"),
        ("double", (1,), "holds float64, but only float16 or float32 can"),
        ("number", (1,), "holds int8, but only"),
        ("nan", (2,), "holds infinity or NaN"),
    ],
)
def test_another_array_than_asked_for_is_refused(name, shape, words):
    found = store(
        a=np.zeros((2, 3), np.float32),
        double=np.zeros(1),
        number=np.zeros(1, np.int8),
        nan=np.float32([0, np.nan]),
    )
    with pytest.raises(UserError, match=words):
        found.take(name, *shape)
    assert found.used == 0


def test_many_names_are_cut():
    assert some(["a", "b"], 2) == "a, b"
    assert some(range(1005), 2) == "0, 1 and 1,003 more"
