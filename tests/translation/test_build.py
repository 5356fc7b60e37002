"""Tests of the decision whether XLA compiles the search."""

import pytest

from t2t_repro import fast
from t2t_repro.decoding.config import Sampling
from t2t_repro.system.errors import UserError
from t2t_repro.translation.build import choose_compilation
from t2t_repro.translation.options import TranslationOptions

pytestmark = pytest.mark.usefixtures("fast_implementations")
PLAIN = TranslationOptions()


@pytest.mark.parametrize(("precision", "lines"), [("float32", 500), ("int8", 3_000)])
def test_compiles_many_batches_of_one_line(precision, lines):
    assert choose_compilation(PLAIN, precision, lines) == 0
    assert choose_compilation(PLAIN, precision, lines - 1) is None
    assert choose_compilation(PLAIN, precision, lines, batch_size=2) is None


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_compiles_after_some_seconds_if_sentences_are_typed(precision):
    assert choose_compilation(PLAIN, precision, batch_size=32) == 4.0


@pytest.mark.parametrize(
    "options",
    [
        {"prefixes": True},
        {"terms": {"one": "eins"}},
        {"sampling": Sampling()},
        {"tensor2tensor_rules": True},
        {"xla": False},
    ],
    ids=str,
)
def test_does_not_compile_other_searches(options):
    assert choose_compilation(TranslationOptions(**options), "float32", 500) is None
    assert choose_compilation(PLAIN, "bfloat16", 3_000) is None


def test_does_not_compile_without_optimized_implementations():
    fast.uninstall()
    assert choose_compilation(PLAIN, "float32", 500) is None
    with pytest.raises(UserError, match="xla compiles the optimized search, which"):
        choose_compilation(TranslationOptions(xla=True), "float32")


def test_xla_compiles_at_once():
    assert choose_compilation(TranslationOptions(xla=True), "float32", 1) == 0
