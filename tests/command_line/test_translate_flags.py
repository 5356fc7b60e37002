"""Which searches `translate` compiles by itself."""

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


def chosen(lines=2_000, model=NARROW, **flags):
    args = Namespace(**PLAIN | flags)
    return translate_flags.compiles_search(args, lines, model)


def test_many_lines_of_a_narrow_model_one_at_a_time_are_compiled(capsys):
    assert chosen()
    assert capsys.readouterr().err.startswith("2,000 lines one at a time: their search")


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
def test_others_are_not_and_nothing_is_said(different, capsys):
    assert not chosen(**different)
    assert capsys.readouterr().err == ""


def test_without_the_optimized_implementations_none_is():
    fast.uninstall()
    assert not chosen()


def test_what_was_asked_for_is_done_without_a_word(capsys):
    assert chosen(lines=None, model=hparams.load("base"), xla=True)
    assert capsys.readouterr().err == ""
