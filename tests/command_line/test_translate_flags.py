"""Tests of the searches that `translate` compiles by default."""

from argparse import Namespace

import pytest

from t2t_repro import fast, hparams
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
}
NARROW = hparams.load("small")


def compiles(lines=2_000, model=NARROW, **flags):
    args = Namespace(**PLAIN | flags)
    return translate_flags.compiles_search(args, lines, model)


def test_compiles_many_batches_of_one_line_for_a_narrow_model(capsys):
    assert compiles()
    assert capsys.readouterr().err.startswith("compiling the search for 2,000 lines")


@pytest.mark.parametrize(
    "different",
    [
        {"lines": 1_999},
        {"lines": None},
        {"model": NARROW.replace(d_model=257, num_heads=1)},
        {"model": hparams.load("base")},
        {"batch_size": 2},
        {"precision": "int8"},
        {"prefix_file": "begin.de"},
        {"terms": "terms.tsv"},
        {"xla": False},
    ],
    ids=str,
)
def test_does_not_compile_other_searches(different, capsys):
    assert not compiles(**different)
    assert capsys.readouterr().err == ""


def test_does_not_compile_without_optimized_implementations():
    fast.uninstall()
    assert not compiles()


def test_xla_flag_compiles_without_a_message(capsys):
    assert compiles(lines=None, model=hparams.load("base"), xla=True)
    assert capsys.readouterr().err == ""
