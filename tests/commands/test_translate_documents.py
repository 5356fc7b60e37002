"""`translate` of documents: their texts are translated like lines of text."""

import signal
import time

import pytest

from tests import run_command
from tests.commands.test_translate import random_lines, translate

pytestmark = pytest.mark.medium


def po(messages, translations=None):
    """Returns a PO file; translations are marked as fuzzy."""
    flag = "" if translations is None else "#, fuzzy\n"
    translations = translations or [""] * len(messages)
    entries = zip(messages, translations, strict=True)
    return "\n".join(f'{flag}msgid "{a}"\nmsgstr "{b}"\n' for a, b in entries)


def files(folder):
    return (
        "--input_file",
        str(folder / "in.po"),
        "--output_file",
        str(folder / "out.po"),
    )


def test_texts_are_translated_like_lines_of_text(trained, tmp_path):
    messages = ["One two. Three four!", "<b>five</b> {0} six", "{0}: %s", "seven"]
    flags = ("--split_sentences", "--placeholders", "all")
    lines = translate(trained, *flags, stdin="\n".join(messages).encode())
    (tmp_path / "in.po").write_text(po(messages))
    assert translate(trained, *files(tmp_path)) == (0, "", "")
    expected = po(messages, lines.out.split("\n")[:-1])
    assert (tmp_path / "out.po").read_text() == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.po", "out.po"]


def test_a_document_without_texts_is_copied(trained, tmp_path):
    text = 'msgid "one"\nmsgstr "eins"\n'
    (tmp_path / "in.po").write_text(text)
    message = f"{tmp_path}/in.po has no text to translate\n"
    assert translate(trained, *files(tmp_path)) == (0, "", message)
    assert (tmp_path / "out.po").read_text() == text


def test_a_killed_translation_of_a_document_resumes(trained, tmp_path):
    (tmp_path / "in.po").write_text(po(dict.fromkeys(random_lines() * 5)))
    flags = (*files(tmp_path), "--window", "2", "--batch_size", "2")
    journal = tmp_path / "out.po.texts.partial.journal"
    process = run_command.start(
        "translate", "--model_dir", str(trained.model_dir), *flags
    )
    while process.poll() is None and (
        not journal.exists() or journal.read_bytes().count(b"\n") < 4
    ):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (tmp_path / "out.po").exists()
    done = translate(trained, *flags)
    assert done.status == 0
    assert done.err.startswith("resuming after line ")
    resumed = (tmp_path / "out.po").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.po", "out.po"]
    assert translate(trained, *flags) == (0, "", "")
    assert (tmp_path / "out.po").read_bytes() == resumed


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--scores",), "--scores and --format po cannot be combined"),
        (("--nbest", "2"), "--nbest and --format po cannot be combined"),
        (("--input_file", "-", "--format", "srt"), "--format srt needs --input_file"),
        (("--output_file", "-"), "--format po needs a file as --output_file"),
        (("--format", "text"), "in.po:1: the format is gettext PO, not plain text"),
        (("--format", "text", "--retranslate"), "--retranslate needs a document"),
        (("--format", "json"), "in.po:1: the JSON is damaged"),
        (("--terms", "absent.tsv"), "absent.tsv does not exist"),
    ],
)
def test_flags_that_do_not_suit_documents_are_rejected(trained, tmp_path, flags, words):
    (tmp_path / "in.po").write_text(po(["one"]))
    done = translate(trained, *files(tmp_path), *flags)
    assert run_command.is_one_clear_line(done)
    assert words in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["in.po"]
