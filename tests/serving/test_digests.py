"""Tests of the digests of an export's files in its model card."""

import hashlib
import shutil
import subprocess

import pytest

from t2t_repro import client
from t2t_repro.serving.digests import add_digests, verify
from t2t_repro.system.errors import UserError

EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.fixture
def export(tmp_path):
    """An export of three files, one of them empty, and a card."""
    folder = tmp_path / "1"
    (folder / "assets.extra").mkdir(parents=True)
    (folder / "assets.extra/README.md").write_text("# A\n\n## Files\n\n```\nno\n```\n")
    for name in ("model.bin", "assets.extra/ä b.txt", "saved_model.pb"):
        (folder / name).write_text(name)
    (folder / "empty").touch()
    add_digests(folder, "m", "saved_model")
    return folder


def test_the_card_lists_the_other_files(export):
    card = (export / "assets.extra/README.md").read_text()
    lines = card.partition("no\n```\n\n## Files\n\n```\n")[2].splitlines()
    digest = hashlib.sha256("assets.extra/ä b.txt".encode()).hexdigest()
    assert lines[0] == f"{digest}  assets.extra/ä b.txt"
    assert lines[1] == f"{EMPTY}  empty"
    assert lines[-1] == "```"
    assert len(lines) == 5
    assert verify(export) == 4


def test_sha256sum_accepts_the_list(export):
    if shutil.which("sha256sum") is None:
        pytest.skip("sha256sum is not installed")
    card = (export / "assets.extra/README.md").read_text()
    command = ["sha256sum", "--check", "--strict", "-"]
    lines = card.split("```\n")[-2]
    subprocess.run(command, input=lines.encode(), cwd=export, check=True)


def test_a_format_without_a_card_gets_one(tmp_path):
    (tmp_path / "live.html").touch()
    add_digests(tmp_path, "mymodel", "live_page")
    card = (tmp_path / "README.md").read_text()
    assert card.startswith("# mymodel\n\nExported as live_page by t2t_repro ")
    assert card.endswith(f"## Files\n\n```\n{EMPTY}  live.html\n```\n")


def alter(folder):
    (folder / "empty").write_text("x")


def delete(folder):
    (folder / "model.bin").unlink()


def add_program(folder):
    (folder / "assets.extra/__pycache__").mkdir()
    (folder / "assets.extra/__pycache__/x.pyc").touch()


def link_to_a_folder(folder):
    (folder / "empty").unlink()
    (folder / "empty").symlink_to(folder.parent)


def replace_all(folder):
    for number in range(7):
        (folder / str(number)).touch()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (alter, "1: empty was altered; copy or export the model again"),
        (delete, "1: model.bin is missing;"),
        (add_program, "1: assets.extra/__pycache__/x.pyc is not in the card;"),
        (link_to_a_folder, "1: empty was altered;"),
        (replace_all, "3 is not in the card, 4 is not in the card, 2 more;"),
    ],
)
def test_names_the_file_that_differs(export, change, words):
    change(export)
    with pytest.raises(UserError) as raised:
        verify(export)
    assert words in str(raised.value)


def test_rejects_a_card_without_digests(export):
    (export / "assets.extra/README.md").write_text("# A\n")
    with pytest.raises(UserError, match="has no model card with digests"):
        verify(export)


def test_the_command_prints_the_number_of_files(export, capsys):
    client.main(["--verify", str(export)])
    assert capsys.readouterr().out == "4 files verified\n"
