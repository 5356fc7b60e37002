"""Tests of the command `score`."""

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


def test_prints_a_line_per_pair_and_the_perplexity(trained, files):
    result = score(trained, files)
    assert result.status == 0
    rows = [line.split("\t") for line in result.out.splitlines()]
    assert len(rows) == len(SOURCES)
    log_prob = sum(float(value) for value, _ in rows)
    tokens = sum(int(symbols) for _, symbols in rows)
    perplexity = math.exp(-log_prob / tokens)
    assert result.err == (
        f"{len(rows)} pairs, {tokens} tokens, perplexity {perplexity:.4f} per token\n"
    )
    # The scores do not depend on the order of the pairs.
    for path in files:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join(lines[::-1]), encoding="utf-8")
    again = score(trained, files, "--normalize", "--tokens_per_batch", "1")
    for line, (value, symbols) in zip(again.out.splitlines(), rows[::-1], strict=True):
        normalized, same = line.split("\t")
        assert same == symbols
        expected = float(value) / int(symbols)
        assert float(normalized) == pytest.approx(expected, abs=2e-6)


def test_columns_and_json_contain_the_tokens(trained, files):
    columns = score(trained, files, "--per_token").out.split("\n")[:-1]
    result = score(trained, files, "--per_token", "--normalize", "--json")
    assert (result.status, result.err) == (0, "")
    *pairs, corpus = map(json.loads, result.out.splitlines())
    for line, values, target in zip(columns, pairs, TARGETS, strict=True):
        value, symbols, *tokens = line.split("\t")
        assert values["log_prob"] == pytest.approx(float(value), abs=1e-6)
        assert values["symbols"] == int(symbols) == len(tokens)
        normalized = values["log_prob"] / values["symbols"]
        assert values["normalized"] == pytest.approx(normalized)
        assert "".join(text for text, _ in values["tokens"]) == f"{target}<EOS>"
        for column, (text, log_prob) in zip(tokens, values["tokens"], strict=True):
            escaped, _, number = column.rpartition("=")
            assert escaped == text.replace("\\", "\\\\").replace("\t", "\\t")
            assert float(number) == pytest.approx(log_prob, abs=1e-6)
    assert corpus.keys() == {"pairs", "tokens", "log_prob", "perplexity", "checkpoint"}
    assert corpus["pairs"] == len(TARGETS)
    assert corpus["tokens"] == sum(values["symbols"] for values in pairs)
    assert corpus["checkpoint"] == str(trained.model_dir / "averaged")


def test_cuts_and_counts_long_sources(trained, files):
    files[0].write_text("one two " * 200 + "\none\n", encoding="utf-8")
    files[1].write_text("eins\neins\n", encoding="utf-8")
    result = score(trained, files)
    assert (result.status, result.out.count("\n")) == (0, 2)
    cut = "cut to 512 subwords, EOS included: 1 of 2 source lines"
    assert result.err.splitlines()[1:] == [cut]
