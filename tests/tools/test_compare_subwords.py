"""The comparison of word pieces with the real tensor2tensor's."""

from __future__ import annotations

import json
import os
import sys

import compare_subwords as tool
import pytest

from t2t_repro.tokenizers.word_pieces import ESCAPE_CHARACTERS, RESERVED_PIECES, to_file
from tests import run_command

TOOL = "tools/compare_subwords.py"

PIECES = [*RESERVED_PIECES, *sorted(ESCAPE_CHARACTERS), "a", "b", "ab", "ab_", " "]


@pytest.fixture
def vocab_file(tmp_path):
    path = tmp_path / "small.subwords"
    path.write_bytes(to_file(PIECES))
    return str(path)


@pytest.fixture
def text_file(tmp_path):
    path = tmp_path / "text.en"
    path.write_text("ab ab\n\n ab_ é\u2028 \\ \\u 日本\na, b!  1990.\r\n", "utf-8")
    return str(path)


def letters(texts: list[str]) -> list[list]:
    """A program that codes each letter by itself."""
    return [[[ord(letter) for letter in text], text] for text in texts]


def deaf_to(*words: str):
    """The same program, but it loses the texts named, as an empty list of ids."""

    def code(texts):
        return [
            [[], text] if text in words else found
            for text, found in zip(texts, letters(texts), strict=True)
        ]

    return code


def test_programs_that_agree_have_no_difference():
    found = tool.compare(["a", "b"], letters, letters)
    assert found == {"lines": 2, "different": 0, "first": None}


def test_differences_are_counted_and_the_first_is_kept(monkeypatch):
    monkeypatch.setattr(tool, "CHUNK", 2)  # So that line numbers go across chunks.
    lines = ["a", "b", "c", "d", "c"]
    found = tool.compare(iter(lines), letters, deaf_to("c", "d"))
    assert found == {
        "lines": 5,
        "different": 3,
        "first": {
            "line": 3,
            "text": "c",
            "t2t_repro": [[99], "c"],
            "tensor2tensor": [[], "c"],
        },
    }


def test_an_answer_that_is_too_short_is_a_fault():
    with pytest.raises(ValueError, match="shorter"):
        tool.compare(["a", "b"], letters, lambda texts: letters(texts)[:1])


def test_a_difference_in_the_text_alone_is_found_and_told():
    found = tool.compare(["a"], letters, lambda texts: [[[97], "A"]])
    assert tool.line_of({"file": "x.en", **found}) == (
        "x.en: 1 lines, 1 differ, first line 1 in its decoded text: 'a' is 'a' by "
        "t2t_repro and 'A' by tensor2tensor"
    )


@pytest.mark.medium
def test_differences_end_in_status_1(tmp_path, text_file, vocab_file):
    # Stands in for tensor2tensor's Python, to differ from ours as the real one never
    # should: it finds no ids in any text, which is right for none of them.
    script = tmp_path / "nothing.py"
    script.write_text(
        "import json, sys\nfor line in sys.stdin:\n"
        "    coded = [[[], t] for t in json.loads(line)]\n"
        "    print(json.dumps({'coded': coded}), flush=True)\n"
    )
    other = tmp_path / "python"
    other.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}"\n')
    other.chmod(0o755)
    flags = ["--t2t_python", str(other), "--vocab_file", vocab_file]
    done = run_command.run(TOOL, text_file, *flags)
    assert done.status == 1, done.err
    first, last = done.out.splitlines()
    # The empty line has no ids in ours either.
    assert first == (
        f"{text_file}: 4 lines, 3 differ, first line 1 in its ids: 'ab ab' is "
        f"[{PIECES.index('ab_')}, {PIECES.index('ab_')}] by t2t_repro and [] by "
        "tensor2tensor"
    )
    assert last == "all: 4 lines, 3 differ"


def test_a_python_without_tensor2tensor_is_one_clear_line(text_file, vocab_file):
    done = run_command.run(
        TOOL, text_file, "--t2t_python", sys.executable, "--vocab_file", vocab_file
    )
    assert done.status == 2
    assert done.err == (
        f"error: --t2t_python {sys.executable} has no tensor2tensor; install it there\n"
    )


def test_a_missing_file_is_one_clear_line(text_file, vocab_file):
    done = run_command.run(
        TOOL,
        *(text_file, "no/such.en"),
        "--t2t_python",
        "python",
        "--vocab_file",
        vocab_file,
    )
    assert done.status == 2
    assert done.err == "error: no/such.en does not exist.\n"
    assert done.out == ""


def test_a_vocabulary_of_another_kind_is_refused(text_file):
    done = run_command.run(
        TOOL, text_file, "--t2t_python", "python", "--vocab_file", "spm6k.model"
    )
    assert done.status == 2
    assert "--vocab_file must be a vocabulary of word pieces" in done.err
    assert done.err.count("\n") == 1


@pytest.mark.medium
def test_the_real_tensor2tensor_agrees(text_file, vocab_file):
    python = os.environ.get("T2T_PYTHON")
    if not python:
        pytest.skip("T2T_PYTHON names no Python 3.7 that has tensor2tensor 1.15.7")
    flags = ["--t2t_python", python, "--vocab_file", vocab_file, "--json"]
    done = run_command.run(TOOL, text_file, *flags)
    assert done.status == 0, done.out + done.err
    assert json.loads(done.out) == {
        "lines": 4,
        "different": 0,
        "files": [{"file": text_file, "lines": 4, "different": 0, "first": None}],
    }
