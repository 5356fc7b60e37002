"""Tests of the OPUS-MT benchmark with a small model."""

import json
import sys
from importlib.util import find_spec

import pytest

from tests import run_command

TOOL = "tools/benchmarks/benchmark_opus_mt.py"
SMALL = "--d_model=64 --num_layers=1 --vocab_size=1100 --length=5 --steps=9"
SMALL += " --batch_size=3 --sentences=2 --rounds=1"


@pytest.mark.medium
@pytest.mark.skipif(not find_spec("transformers"), reason="needs Transformers")
def test_translations_equal_those_of_transformers():
    flags = ["--peers_python", sys.executable, *SMALL.split(), "--json"]
    result = run_command.run_alone(TOOL, *flags)
    assert result.status == 0, result.err
    tables = json.loads(result.out)["tables"]
    names = ["t2t_repro", "t2t_repro, XLA", "Transformers", "CTranslate2"]
    table = tables["an OPUS-MT model"]
    assert list(table) == names
    for name, row in table.items():
        for work, count in (("batch of 3", 3), ("one sentence", 2)):
            assert row[work][0] > 0
            same = f"{count} of {count}" if name in names[:2] else None
            assert row.get(f"{work}, equal to Transformers") == same


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ([], "--peers_python"),
        (["--peers_python", "/no/such"], "--peers_python /no/such: No such file"),
        (["--peers_python", "x", "--vocab_size", "9"], "must be at least 1001"),
    ],
)
def test_rejects_invalid_flags(flags, words):
    result = run_command.run(TOOL, *flags)
    assert run_command.is_one_clear_line(result)
    assert words in result.err
