"""Windows of lines."""

from t2t_repro.texts.windows import windows


def test_windows_are_bounded_by_lines_and_by_characters():
    lines = ["x"] * 5 + ["x" * 1_000_000] * 9 + ["x"] * 2
    assert [len(window) for window in windows(lines, 3)] == [3, 3, 3, 3, 3, 1]
    # A window of 2^22 characters is full after five of the long lines.
    assert [len(window) for window in windows(lines, 100)] == [10, 6]
    assert [line for window in windows(lines, 100) for line in window] == lines
    assert list(windows([], 3)) == []
