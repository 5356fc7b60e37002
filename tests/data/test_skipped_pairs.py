"""Lists of skipped pairs with line numbers and reasons."""

import numpy as np
import pytest

from t2t_repro.data.manifest import Origin
from t2t_repro.data.shards import load_shards, write_shards
from t2t_repro.data.skipped_pairs import (
    SkippedPair,
    find_long_pairs,
    line_numbers,
    read_skipped_pairs,
    write_skipped_pairs,
)
from t2t_repro.system.errors import UserError
from tests.data.code_points import CodePointTokenizer

ORIGIN = Origin("files", "data-1", "train.en and train.de", "en", "de")
# Lines 2, 3 and 25 to 54 have an empty side; lines 1 and 5 have a long side.
PAIRS = [
    *(("a" * 9, "ä"), ("", "x"), ("c", " \u3000"), ("d e", "g h"), ("é", "i" * 8)),
    *[("f", "g")] * 19,
    *[("", "h")] * 30,
    ("k", "l"),
]


@pytest.fixture
def directory(tmp_path):
    path = tmp_path / "train"
    write_shards(PAIRS, CodePointTokenizer(), path, "train", ORIGIN)
    return path


def test_all_pairs_with_an_empty_side_are_listed(directory):
    expected = [SkippedPair(2, "empty source"), SkippedPair(3, "empty target")]
    expected += [SkippedPair(line, "empty source") for line in range(25, 55)]
    assert read_skipped_pairs(directory) == expected
    first = (
        (directory / "skipped_pairs.tsv").read_text(encoding="utf-8").split("\n")[:3]
    )
    assert first == ["line\treason", "2\tempty source", "3\tempty target"]


def test_manifest_replaces_a_missing_list(directory):
    (directory / "skipped_pairs.tsv").unlink()
    pairs = read_skipped_pairs(directory)
    assert pairs[:2] == [
        SkippedPair(2, "empty source"),
        SkippedPair(3, "empty target"),
    ]
    assert len(pairs) == 20 + 1


def test_long_pairs_are_listed_with_their_line_numbers(directory):
    pairs = load_shards(directory)
    reason = "source has {} tokens, target has {}; the maximum is 8"
    assert find_long_pairs(pairs.lengths, 8, read_skipped_pairs(directory)) == [
        SkippedPair(1, reason.format(10, 2)),
        SkippedPair(5, reason.format(2, 9)),
    ]
    assert find_long_pairs(pairs.lengths, 10, read_skipped_pairs(directory)) == []


def test_line_numbers_include_skipped_lines(directory):
    # Numbers of the lines that were not skipped.
    expected = [1, 4, *range(5, 25), 55]
    lines = line_numbers(np.arange(len(expected)), read_skipped_pairs(directory))
    assert lines.tolist() == expected
    assert line_numbers(np.array([7, 0]), []).tolist() == [8, 1]


def test_no_skipped_pairs_give_an_empty_list(tmp_path):
    write_skipped_pairs(tmp_path, {})
    assert read_skipped_pairs(tmp_path) == []


@pytest.mark.parametrize(
    "line", [b"3\tempty \xff\n", b"9" * 5000 + b"\tempty target\n"]
)
def test_damaged_list_is_refused(directory, line):
    (directory / "skipped_pairs.tsv").write_bytes(b"line\treason\n" + line)
    with pytest.raises(UserError, match=r"skipped_pairs\.tsv is damaged .*; run data"):
        read_skipped_pairs(directory)
