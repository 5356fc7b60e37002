"""Padding is measured as it is defined, and is as little as it shall be."""

import json

import measure_padding
import numpy as np
import pytest

from t2t_repro.hparams import HParams
from tests import run_command, tiny

TOOL = "tools/measure_padding.py"


def test_every_kind_is_measured_with_one_part_and_with_several():
    lengths = np.array([[4, 4]] * 8 + [[2, 4]] * 4 + [[40, 2]], np.int32)
    bounds = HParams(tokens_per_batch=32, max_tokens_per_device=16, max_length=8)
    rows = measure_padding.measure(lengths, bounds, max_shapes=2)
    assert [(row.kind, row.tokens_per_part) for row in rows] == [
        (kind, part) for part in (32, 16) for kind in measure_padding.BATCHING_KINDS
    ]
    found = rows[0]
    # Sorted by the longer side all twelve are equal: 8 and 4 rows of 4, and which
    # share the rows of four by four is chance: 88 tokens.
    assert (found.shapes, found.parts, found.batches) == (2, 2, 2)
    assert found.full == (32 + 16) / 2 / 32
    assert found.left_out == 1 / 13
    found = rows[2]
    # One of the four narrow pairs changes places: three parts of three rows and 4 + 4
    # hold nine pairs, one of three rows and 2 + 4 the others.
    assert (found.shapes, found.parts, found.batches) == (2, 4, 2)
    assert found.share == 88 / 90


def test_pairs_that_meet_again_are_counted():
    # Of 0 1 2 | 3 4, three and one pairs of pairs: 0 1 and 3 4 meet again, 2 does not.
    one, other = np.array([0, 0, 0, 1, 1]), np.array([1, 1, 0, 0, 0])
    assert measure_padding.together_again(one, other) == 2 / 4


def test_a_table_is_printed_of_several_files(tmp_path):
    for name in ("a", "b"):
        for side, lang in enumerate(("en", "de")):
            lines = [pair[side] for pair in tiny.pairs("train")]
            (tmp_path / f"{name}.{lang}").write_text("\n".join(lines) + "\n")
    flags = ["--source_file", *(str(tmp_path / f"{n}.en") for n in "ab")]
    flags += ["--target_file", *(str(tmp_path / f"{n}.de") for n in "ab")]
    flags += ["--vocab_size", "300", "--tokens_per_batch", "512"]
    done = run_command.run(TOOL, *flags)
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].startswith("120 pairs, ")
    assert lines[2] == measure_padding.HEAD
    assert len(lines) == 5  # A batch of 512 positions is one part.
    assert {len(line) for line in lines[2:]} == {len(measure_padding.HEAD)}


def test_files_that_do_not_belong_together_are_refused(tmp_path):
    flags = ("--source_file", "a", "b", "--target_file", "a")
    done = run_command.run(TOOL, *flags)
    assert run_command.is_one_clear_line(done)
    assert "--source_file names 2 files but --target_file 1" in done.err


@pytest.mark.medium
@pytest.mark.parametrize(
    "stems",
    [
        ["multi30k/train"],
        ["tatoeba-en-de/train"],
        [
            f"wmt_newstest/en-de/newstest{year}"
            for year in (
                *("2010", "2011", "2012", "2013"),
                *("2014-deen", "2016-ende", "2017-ende"),
            )
        ],
    ],
    ids=["multi30k", "tatoeba", "newstest"],
)
def test_the_paper_s_batches_are_padded_little(shared_dir, stems):
    """16,000 byte pairs, 25,000 positions a side."""
    corpora = shared_dir / "corpora"
    flags = ["--source_file", *(str(corpora / f"{stem}.en") for stem in stems)]
    flags += ["--target_file", *(str(corpora / f"{stem}.de") for stem in stems)]
    done = run_command.run(TOOL, *flags, "--json")
    assert done.status == 0, done.err
    one_part, found = (
        {
            row["kind"]: row
            for row in json.loads(done.out)["rows"]
            if row["tokens_per_part"] == bound
        }
        for bound in (25_000, 3571)
    )
    assert found["sorted"]["share"] >= 0.96
    assert found["buckets"]["share"] >= 0.93
    assert found["buckets"]["shapes"] <= 48
    for kind in ("sorted", "buckets"):
        assert found[kind]["left_out"] <= 0.001
        assert found[kind]["full"] > 0.85
        # Parts are dealt anew, so fewer pairs meet again.
        assert found[kind]["together_again"] < one_part[kind]["together_again"]
