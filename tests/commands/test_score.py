"""The command `score`: a line for every pair."""

import json
import math

import pytest

from tests import run_command, tiny

pytestmark = pytest.mark.medium

SOURCES = [source for source, _ in tiny.pairs("test")] + ["", "one"]
TARGETS = [target for _, target in tiny.pairs("test")] + ["eins", "tab\\\tbehind €"]


@pytest.fixture
def files(tmp_path):
    paths = tmp_path / "in.en", tmp_path / "in.de"
    for path, lines in zip(paths, (SOURCES, TARGETS), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return paths


def score(trained, files, *arguments):
    flags = ("--model_dir", str(trained.model_dir))
    flags += ("--source_file", str(files[0]), "--target_file", str(files[1]))
    return run_command.run("score", *flags, *arguments)


def test_every_pair_has_a_line_and_the_corpus_a_perplexity(trained, files):
    done = score(trained, files)
    assert done.status == 0
    rows = [line.split("\t") for line in done.out.splitlines()]
    assert len(rows) == len(SOURCES)
    log_prob = sum(float(value) for value, _ in rows)
    tokens = sum(int(symbols) for _, symbols in rows)
    perplexity = math.exp(-log_prob / tokens)
    assert done.err == (
        f"{len(rows)} pairs, {tokens} tokens, perplexity {perplexity:.4f} per token\n"
    )
    # The same pairs in another order have the same scores.
    for path in files:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join(lines[::-1]), encoding="utf-8")
    again = score(trained, files, "--normalize", "--tokens_per_batch", "1")
    for line, (value, symbols) in zip(again.out.splitlines(), rows[::-1], strict=True):
        normalized, same = line.split("\t")
        assert same == symbols
        expected = float(value) / int(symbols)
        assert float(normalized) == pytest.approx(expected, abs=2e-6)


def test_columns_and_json_hold_the_tokens(trained, files):
    columns = score(trained, files, "--per_token").out.split("\n")[:-1]
    done = score(trained, files, "--per_token", "--normalize", "--json")
    assert (done.status, done.err) == (0, "")
    *pairs, corpus = map(json.loads, done.out.splitlines())
    for line, found, target in zip(columns, pairs, TARGETS, strict=True):
        value, symbols, *tokens = line.split("\t")
        assert found["log_prob"] == pytest.approx(float(value), abs=1e-6)
        assert found["symbols"] == int(symbols) == len(tokens)
        normalized = found["log_prob"] / found["symbols"]
        assert found["normalized"] == pytest.approx(normalized)
        assert "".join(text for text, _ in found["tokens"]) == f"{target}<EOS>"
        for column, (text, log_prob) in zip(tokens, found["tokens"], strict=True):
            escaped, _, number = column.rpartition("=")
            assert escaped == text.replace("\\", "\\\\").replace("\t", "\\t")
            assert float(number) == pytest.approx(log_prob, abs=1e-6)
    assert corpus.keys() == {"pairs", "tokens", "log_prob", "perplexity", "checkpoint"}
    assert corpus["pairs"] == len(TARGETS)
    assert corpus["tokens"] == sum(found["symbols"] for found in pairs)
    assert corpus["checkpoint"] == str(trained.model_dir / "averaged")


def test_files_of_different_lengths_are_refused_before_the_work(trained, files):
    with open(files[1], "a", encoding="utf-8") as file:
        file.write("zehn\n")
    done = score(trained, files)
    assert run_command.is_one_clear_line(done)
    assert f"{files[0]} has 8 lines but {files[1]} has 9" in done.err
    assert done.out == ""


def test_what_is_missing_is_named(trained, files, tmp_path):
    done = score(trained, (tmp_path / "absent.en", files[1]))
    assert run_command.is_one_clear_line(done)
    assert "absent.en does not exist" in done.err
    done = score(trained, files, "--checkpoint", "absent")
    assert run_command.is_one_clear_line(done)
    assert "--checkpoint absent: no such folder" in done.err
    done = run_command.run("score", "--model_dir", str(trained.model_dir))
    assert run_command.is_one_clear_line(done)
    assert "--source_file" in done.err


def test_sources_that_are_too_long_are_cut_and_counted(trained, files):
    files[0].write_text("one two " * 200 + "\none\n", encoding="utf-8")
    files[1].write_text("eins\neins\n", encoding="utf-8")
    done = score(trained, files)
    assert (done.status, done.out.count("\n")) == (0, 2)
    cut = "cut to 512 subwords, EOS included: 1 of 2 source lines"
    assert done.err.splitlines()[1:] == [cut]
