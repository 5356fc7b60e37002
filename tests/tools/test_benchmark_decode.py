"""The timing of the search beside CTranslate2, on a small model."""

import json

import numpy as np
import pytest
from plain_search import log_softmax, penalty, plain_search

from t2t_repro.fast import int8_matmul
from t2t_repro.models import precision
from tests import run_command

TOOL = "tools/benchmark_decode.py"
SMALL = "--d_model=64 --num_layers=1 --vocab_size=500 --length=5 --steps=9"
SMALL += " --batch_size=3 --batches=3 --sentences=6 --rounds=1 --checked=6"


@pytest.mark.medium
def test_all_programs_run_and_the_fast_search_finds_what_the_plain_one_does():
    done = run_command.run_alone(TOOL, *SMALL.split(), "--json")
    assert done.status == 0, done.err
    result = json.loads(done.out)
    alike = {"checked": 6, "same": 6}
    assert result["plain_search"] == {
        "t2t_repro float32": alike,
        "t2t_repro float32, XLA": alike,
    }
    sixteen_bits = {"t2t_repro bfloat16", "products bfloat16"}
    assert set(result["contenders"]) == {
        "t2t_repro float32",
        "t2t_repro float32, XLA",
        *(() if precision.unsupported_reason("bfloat16") else sixteen_bits),
        *([] if int8_matmul.unsupported_reason() else ["t2t_repro int8"]),
        "t2t_repro float32, 1 decoder layer",
        "CTranslate2 float32",
        "CTranslate2 int8",
        "products float32",
    }
    for each in result["contenders"].values():
        speeds = each["tokens_per_second"]
        assert list(speeds) == [
            *("3 batches of 3", "a batch of 3 alone", "a sentence alone")
        ]
        assert min(speed for (speed,) in speeds.values()) > 0
        assert each["start_seconds"][0] > 0
        assert each["peak_memory"] > 10**8


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--only", "fairseq"], "--only: must be of t2t_repro, ctranslate2"),
        (["--steps", "4"], "--steps must be at least --length"),
        (["--d_model", "100"], "--d_model must be a multiple of 64"),
    ],
)
def test_flags_are_checked(flags, words):
    done = run_command.run(TOOL, *flags)
    assert run_command.is_one_clear_line(done)
    assert words in done.err


def table_search(table, **settings):
    """Searches a bigram model: float (V, V), a row per last symbol; row 0 begins."""
    logs = log_softmax(table)
    return plain_search(
        lambda beginnings: logs[[ids[-1] if ids else 0 for ids in beginnings]].copy(),
        **settings,
    )


def test_the_plain_search_is_exhaustive_with_a_wide_beam():
    """Of three symbols all 2 + 4 + 8 hypotheses of up to three are looked at."""
    table = np.random.default_rng(1).normal(size=(4, 4))
    logs = log_softmax(table)
    best = []
    for length in (1, 2, 3):
        for places in np.ndindex(*[2] * (length - 1)):
            ids = [2 + place for place in places] + [1]
            pairs = zip([0, *ids], ids, strict=False)
            total = sum(logs[before, after] for before, after in pairs)
            best.append((total / penalty(length, 0.6), ids))
    settings = {"beam_size": 8, "alpha": 0.6, "steps": 3}
    ids, score = table_search(table, min_length=0, **settings)
    assert (score, ids) == max(best)
    ids, score = table_search(table, min_length=3, **settings)
    assert (score, ids) == max(each for each in best if len(each[1]) == 3)


def test_the_penalty_is_that_of_wu_et_al():
    assert penalty(1, 0.6) == 1
    assert penalty(7, 1.0) == 2
