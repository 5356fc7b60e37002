"""A folder has its name when it is whole; what had it before stays until then."""

import pytest

from t2t_repro.system.atomic_dir import whole_folder


def fill(folder, text):
    (folder / "below").mkdir()
    (folder / "below" / "file").write_text(text)


def test_a_folder_takes_its_name_when_it_is_filled(tmp_path):
    final = tmp_path / "made" / "final"
    for text in ("old", "new"):
        with whole_folder(final) as aside:
            fill(aside, text)
            assert (final / "below" / "file").exists() == (text == "new")
    assert (final / "below" / "file").read_text() == "new"
    assert list(final.parent.iterdir()) == [final]


def test_what_was_there_stays_if_the_new_folder_is_not_finished(tmp_path):
    final = tmp_path / "final"
    with whole_folder(final) as aside:
        fill(aside, "old")
    with pytest.raises(ZeroDivisionError), whole_folder(final) as aside:
        fill(aside, "new")
        raise ZeroDivisionError
    assert (final / "below" / "file").read_text() == "old"
    assert list(tmp_path.iterdir()) == [final]


def test_what_a_killed_process_left_is_cleared_away(tmp_path):
    for left in (".writing-final", ".writing-over-final"):
        (tmp_path / left).mkdir()
        fill(tmp_path / left, "half")
    with whole_folder(tmp_path / "final") as aside:
        assert list(aside.iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["final"]
