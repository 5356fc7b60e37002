"""Tests of the file of checked pairs."""

import numpy as np
import pytest

from t2t_repro.cleaning.checked_file import MARKS, Checked, checked_file
from t2t_repro.cleaning.report import Report
from t2t_repro.system.errors import UserError


def chunk(first, count):
    marks = np.zeros(count, MARKS)
    marks["hashes"][:, 0] = np.arange(first, first + count)
    report = Report()
    report.add(report.repaired, "tags", (f"line {first}", "<b>a</b>", "a"))
    lines = "".join(f"line {n}\tsource {n}\tZiel\u2028{n}\n" for n in range(count))
    return Checked(marks, report, lines)


@pytest.fixture
def path(tmp_path):
    """File of an interrupted run with chunks of two and three pairs."""
    path = tmp_path / "out.partial"
    with pytest.raises(KeyboardInterrupt), checked_file(path, {"a": 1}) as file:
        file.append(chunk(0, 2))
        file.append(chunk(2, 3))
        raise KeyboardInterrupt
    return path


def test_chunks_that_were_written_whole_remain(path):
    content = path.read_bytes()
    second = content.index(b'{"bytes"', content.index(b'{"bytes"') + 1)
    for size in range(second - 1, len(content) + 1):
        path.write_bytes(content[:size])
        with pytest.raises(KeyboardInterrupt), checked_file(path, {"a": 1}) as file:
            expected = 5 if size == len(content) else 2 if size >= second else 0
            assert file.pairs == expected
            marks, report = file.read_marks()
            assert marks["hashes"][:, 0].tolist() == list(range(expected))
            assert report.repaired["tags"] == {0: 0, 2: 1, 5: 2}[expected]
            pairs = [("line 0", "source 0", "Ziel\u20280")]
            assert [*file.read_pairs()][:1] == pairs[:expected]
            raise KeyboardInterrupt


def test_other_input_or_rules_begin_again(path):
    with checked_file(path, {"a": 2}) as file:
        assert file.pairs == 0
    assert not path.exists()


def test_two_runs_must_not_write_the_same_file(path):
    with (
        checked_file(path, {"a": 1}),
        pytest.raises(UserError, match="another process"),
        checked_file(path, {"a": 1}),
    ):
        pass
