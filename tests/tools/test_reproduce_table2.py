"""Table 2: costs by arithmetic, results where a model was trained."""

import json

import pytest

from tests import run_command


def rows(*flags):
    done = run_command.run("tools/reproduce_table2.py", *flags, "--json")
    assert done.status == 0, done.err
    return {row["set"]: row for row in json.loads(done.out)["rows"]}


def test_costs_are_those_of_arithmetic():
    found = rows("--tokens_per_second", "25000")
    assert list(found) == ["base", "big", "base_enfr", "big_enfr"]
    base, big = found["base"], found["big"]
    # 100,000 and 300,000 steps of 25,000 tokens.
    assert (base["target_tokens"], big["target_tokens"]) == (2.5e9, 7.5e9)
    # 6 N a pair of tokens: 0.378e9 and 1.284e9 operations.
    assert base["counted_flops"] == pytest.approx(2.5e9 * 0.378e9, rel=0.02)
    assert big["counted_flops"] == pytest.approx(7.5e9 * 1.284e9, rel=0.02)
    # 12 hours and 3.5 days, eight P100 at 9.5 TFLOPS: the paper's 3.3e18, 2.3e19.
    assert base["estimated_flops"] == pytest.approx(3.3e18, rel=0.01)
    assert big["estimated_flops"] == pytest.approx(2.3e19, rel=0.01)
    # 2.5e9 tokens at 25,000 a second are 100,000 seconds.
    assert base["hours"] == pytest.approx(27.78, abs=0.01)
    # Three times the tokens at 1.284 / 0.378 times the operations.
    assert big["hours"] == pytest.approx(3 * 27.78 * 1.284 / 0.378, rel=0.02)
    assert base["bleu"] is None


def test_a_result_is_read_where_there_is_one(tmp_path):
    folder = tmp_path / "base.translate_ende_wmt14"
    folder.mkdir()
    score = {"bleu": 26.5, "paper_bleu": 27.25, "signature": "a", "paper_signature": ""}
    (folder / "result.json").write_text(json.dumps(score))
    found = rows("--models", str(tmp_path))
    assert {name: found["base"][name] for name in score} == score
    assert found["big"]["bleu"] is None
    done = run_command.run("tools/reproduce_table2.py", "--models", str(tmp_path))
    (line,) = [line for line in done.out.splitlines() if line.startswith("| base |")]
    assert line.endswith("| 3.3e+18 | - | 27.3 | 26.50 | 27.25 |")
    score["paper_bleu_original_quotes"] = 26.75
    (folder / "result.json").write_text(json.dumps(score))
    done = run_command.run("tools/reproduce_table2.py", "--models", str(tmp_path))
    assert "| 26.50 | 27.25 (original quotes: 26.75) |" in done.out


def test_a_damaged_result_is_told(tmp_path):
    folder = tmp_path / "big.translate_ende_wmt14"
    folder.mkdir()
    (folder / "result.json").write_text("[")
    done = run_command.run("tools/reproduce_table2.py", "--models", str(tmp_path))
    assert run_command.is_one_clear_line(done)
    assert "result.json is damaged" in done.err
