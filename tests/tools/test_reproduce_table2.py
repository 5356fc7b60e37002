"""Tests of table 2: costs from manual arithmetic, and results of trained models."""

import json

import pytest

from tests import run_command


def rows(*flags):
    result = run_command.run("tools/reproduce_table2.py", *flags, "--json")
    assert result.status == 0, result.err
    return {row["set"]: row for row in json.loads(result.out)["rows"]}


def test_costs_equal_manual_arithmetic():
    table = rows("--tokens_per_second", "25000")
    assert list(table) == ["base", "big", "base_enfr", "big_enfr"]
    base, big = table["base"], table["big"]
    # 100,000 and 300,000 steps of 25,000 tokens.
    assert (base["target_tokens"], big["target_tokens"]) == (2.5e9, 7.5e9)
    # 6 N operations per pair of tokens: 0.378e9 and 1.284e9.
    assert base["counted_flops"] == pytest.approx(2.5e9 * 0.378e9, rel=0.02)
    assert big["counted_flops"] == pytest.approx(7.5e9 * 1.284e9, rel=0.02)
    # 12 hours and 3.5 days on eight P100 with 9.5 TFLOP/s; the paper rounds to 3.3e18
    # and 2.3e19.
    assert base["estimated_flops"] == pytest.approx(3.3e18, rel=0.01)
    assert big["estimated_flops"] == pytest.approx(2.3e19, rel=0.01)
    # 2.5e9 tokens at 25,000 tokens/s take 100,000 s.
    assert base["hours"] == pytest.approx(27.78, abs=0.01)
    # Three times the tokens with 1.284 / 0.378 times the operations each.
    assert big["hours"] == pytest.approx(3 * 27.78 * 1.284 / 0.378, rel=0.02)
    assert base["bleu"] is None
