"""Tests of the searches that `translate` compiles by default."""

from argparse import Namespace

import pytest

from t2t_repro import fast
from t2t_repro.command_line import translate_flags

pytestmark = pytest.mark.usefixtures("fast_implementations")
PLAIN = {
    "xla": None,
    "batch_size": 1,
    "precision": "float32",
    "sampling": False,
    "tensor2tensor_rules": False,
    "prefix_file": None,
    "terms": None,
    "input_file": "-",
}


def compile_after(lines=500, **flags):
    return translate_flags.compile_after(Namespace(**PLAIN | flags), lines)


@pytest.mark.parametrize(("precision", "lines"), [("float32", 500), ("int8", 3_000)])
def test_compiles_many_batches_of_one_line(precision, lines, capsys):
    assert compile_after(lines, precision=precision) == 0
    assert capsys.readouterr().err.startswith(f"compiling the search for {lines:,} lin")


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_compiles_on_a_terminal_after_some_seconds(precision, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    flags = {"lines": None, "batch_size": 32, "precision": precision}
    assert compile_after(**flags) == 4.0
    assert compile_after(**flags, input_file="text.en") is None
    assert compile_after(**flags, xla=False) is None
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "different",
    [
        {"lines": 499},
        {"lines": None},
        {"batch_size": 2},
        {"lines": 2_999, "precision": "int8"},
        {"lines": 3_000, "precision": "bfloat16"},
        {"prefix_file": "begin.de"},
        {"terms": "terms.tsv"},
        {"xla": False},
    ],
    ids=str,
)
def test_does_not_compile_other_searches(different, capsys):
    assert compile_after(**different) is None
    assert capsys.readouterr().err == ""


def test_does_not_compile_without_optimized_implementations():
    fast.uninstall()
    assert compile_after() is None


def test_xla_flag_compiles_without_a_message(capsys):
    assert compile_after(lines=None, xla=True) == 0
    assert capsys.readouterr().err == ""
