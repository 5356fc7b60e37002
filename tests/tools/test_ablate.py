"""Tests of the ablations: rows at several sizes, and the table."""

import json

import pytest
from ablation import rows

from t2t_repro import hparams
from tests import run_command, tiny

BASE = hparams.load("base")
# Half of the paper's width and depth, and an eighth of its steps.
HALF = BASE.replace(d_model=256, d_ff=1024, num_layers=3, train_steps=12_500)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("base", {}),
        ("table3_b_dk16", {"d_k": 8}),
        ("table3_c_n2", {"num_layers": 1}),
        ("table3_d_smoothing2", {"label_smoothing": 0.2}),
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
        # A uniform distribution has a perplexity of VOCAB_SIZE.
        assert 1 < row["perplexity"] < 2 * tiny.VOCAB_SIZE
    assert (tmp_path / "w/table3.md").read_text().count("\n| ") >= 2
    again = run_command.run("tools/ablate.py", *flags)
    assert again.err.count("reusing ") == 2
    assert json.loads(again.out)["rows"] == json.loads(first.out)["rows"]
