"""Tests of the ablations: rows at several sizes, and the table."""

import json

import pytest
from ablation import rows
from ablation.table import as_markdown, summary
from model_costs import parameters

from t2t_repro import hparams
from t2t_repro.system.errors import UserError
from tests import run_command, tiny

BASE = hparams.load("base")
# Half of the paper's width and depth, and an eighth of its steps.
HALF = BASE.replace(d_model=256, d_ff=1024, num_layers=3, train_steps=12_500)


def test_a_row_equals_its_set_at_the_papers_size():
    for row in rows.ROWS:
        expected = hparams.load(row).replace(average_last=5)
        assert BASE.replace(**rows.changes(row, BASE)) == expected


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("base", {}),
        ("table3_a_h32", {"num_heads": 32}),
        ("table3_b_dk16", {"d_k": 8}),
        ("table3_c_n2", {"num_layers": 1}),
        ("table3_c_n8", {"num_layers": 4}),
        ("table3_c_d1024", {"d_model": 512}),
        ("table3_c_ff1024", {"d_ff": 512}),
        ("table3_d_dropout0", {"dropout": 0.0}),
        ("table3_d_smoothing2", {"label_smoothing": 0.2}),
        ("table3_e_learned", {"position": "learned"}),
        (
            "big",
            {
                **{"d_model": 512, "d_ff": 2048, "num_heads": 16},
                **{"dropout": 0.3, "train_steps": 37_500},
            },
        ),
    ],
)
def test_sizes_keep_their_ratio_to_base(row, expected):
    assert rows.changes(row, HALF) == expected


def test_rejects_a_fractional_size():
    with pytest.raises(UserError, match="row table3_c_n2: num_layers would be 0"):
        rows.changes("table3_c_n2", BASE.replace(num_layers=2))


@pytest.mark.parametrize(
    "row",
    [
        row
        for row, paper in rows.ROWS.items()
        # Rows with another d_model also change the size of the embeddings, which the
        # paper does not state.
        if paper.parameters and row.startswith(("table3_b", "table3_c_n", "table3_c_f"))
    ],
)
def test_parameters_differ_from_base_as_in_the_paper(row):
    """The paper rounds both figures to millions."""
    ours = parameters(hparams.load(row), 37_000) - parameters(BASE, 37_000)
    papers = rows.ROWS[row].parameters - rows.ROWS["base"].parameters
    assert ours / 1e6 == pytest.approx(papers, abs=1.0)


def result(row, seed, bleu, perplexity):
    return {
        **{"row": row, "seed": seed, "bleu": bleu, "perplexity": perplexity},
        **{"parameters": 1000, "signature": "s", "sentences": 5},
        "hparams": hparams.load(row).to_dict(),
    }


def test_table_rows_have_means_and_values_by_seed():
    base = summary("base", [result("base", 1, 20.0, 8.0), result("base", 2, 21.0, 9.0)])
    other = summary("table3_c_n2", [result("table3_c_n2", 1, 18.0, 10.0)])
    *_, first, second = as_markdown([base, other]).splitlines()
    assert first == (
        "| base | - | 1,000 | 8.50 (8.00, 9.00) | 20.50 (20.00, 21.00) | 2 "
        "| 65M | 4.92 | 25.8 |"
    )
    assert second == (
        "| table3_c_n2 | num_layers 2 | 1,000 | 10.00 | 18.00 | 1 | 36M | 6.11 | 23.7 |"
    )


def test_counts_parameters_without_training():
    result = run_command.run("tools/ablate.py", "--count", "--json")
    counted = {e["row"]: e["parameters"] for e in json.loads(result.out)["rows"]}
    assert set(counted) == set(rows.ROWS)
    assert counted["base"] == 63_062_016
    assert counted["big"] == 214_204_416


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--rows", "base,a_h1"), "--rows: must be one of all, base, table3"),
        (
            ("--seeds", "1,b", "--work_dir", "w"),
            "--seeds: must be a whole number of at least 0, not 'b'",
        ),
        ((), "--work_dir is required"),
    ],
)
def test_rejects_invalid_flags(flags, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run_command.run("tools/ablate.py", *flags)
    assert run_command.is_one_clear_line(result)
    assert words in result.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.medium
def test_trains_and_scores_rows_once(forked_python, tmp_path):
    tiny.write_corpus(tmp_path / "data")
    base = tiny.write_hparams(tmp_path)
    # With a longer warm-up, only the tool scores the models.
    base = f"{base},num_heads=4,dropout=0.1,warmup_steps=9"
    flags = ("--hparams", base, "--seeds", "3", "--json")
    flags += ("--rows", "table3_a_h4,table3_d_dropout0")
    flags += ("--data_dir", str(tmp_path / "data"), "--work_dir", str(tmp_path / "w"))
    first = run_command.run("tools/ablate.py", *flags, "--jobs", "2")
    assert first.status == 0, first.err
    table = {row["row"]: row for row in json.loads(first.out)["rows"]}
    assert list(table) == ["table3_a_h4", "table3_d_dropout0"]
    assert table["table3_a_h4"]["hparams"]["num_heads"] == 2
    assert table["table3_d_dropout0"]["hparams"]["dropout"] == 0
    for row in table.values():
        assert row["seeds"] == [3]
        # A uniform distribution has a perplexity of VOCAB_SIZE.
        assert 1 < row["perplexity"] < 2 * tiny.VOCAB_SIZE
        assert row["sentences"] == tiny.SIZES["val"]
    assert (tmp_path / "w/table3.md").read_text().count("\n| ") >= 2
    again = run_command.run("tools/ablate.py", *flags)
    assert again.err.count("reusing ") == 2
    assert json.loads(again.out)["rows"] == json.loads(first.out)["rows"]
