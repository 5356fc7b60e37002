"""Tests of the command `clean`."""

from __future__ import annotations

import csv
import json
import signal
import time
from collections import Counter, defaultdict

import pytest

from tests import run_command

NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight"]
NUMBERS += ["nine"]
ZAHLEN = ["null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht"]
ZAHLEN += ["neun"]
# Rule, source, target; a second pair of lines is the repaired text.
DIRTY = [
    ("empty", "", "Der Rest fehlt."),
    ("duplicate", "Lamp zero is near table one.", "Lampe null steht bei Tisch eins."),
    ("copy", "Please close the window.", "please close the window"),
    ("urls", "Order at www.lamp.example now.", "Bestellen Sie bei www.tisch.example."),
    ("numbers", "The lamp costs 40 francs.", "Die Lampe kostet 60 Franken."),
    ("language", "The lamp stands on the floor.", "La lampe est posée par terre."),
    ("length_ratio", "It is raining again today, sadly.", "Regen."),
]
REPAIRED = {
    "The wind isn 't cold .": "Der Wind ist nicht kalt .",
    "A <b>green</b> lamp &amp; a table": "Eine gr\u00c3\u00bcne Lampe &amp; ein Tisch",
    "A ta@@ ble is here.": "Ein Ti@@ sch ist hier.",
}
CLEAN = {
    "The wind isn't cold.": "Der Wind ist nicht kalt.",
    "A green lamp & a table": "Eine grüne Lampe & ein Tisch",
    "A table is here.": "Ein Tisch ist hier.",
}


@pytest.fixture
def flags(tmp_path):
    """Flags for 110 pairs, 7 of which must be dropped."""
    pairs = [
        (
            f"Lamp {NUMBERS[n // 10]} is near table {NUMBERS[n % 10]}.",
            f"Lampe {ZAHLEN[n // 10]} steht bei Tisch {ZAHLEN[n % 10]}.",
        )
        for n in range(100)
    ]
    pairs[20:20] = [pair[1:] for pair in DIRTY]
    pairs += REPAIRED.items()
    for side, language in enumerate(("en", "de")):
        text = "".join(f"{pair[side]}\n" for pair in pairs)
        (tmp_path / f"in.{language}").write_text(text, encoding="utf-8")
    files = [str(tmp_path / f"in.{language}") for language in ("en", "de")]
    languages = ("--source_lang", "en", "--target_lang", "de")
    return [*languages, "--workers", "1", "--input", *files]


def read(folder, name):
    return (folder / name).read_text(encoding="utf-8").splitlines()


def test_pairs_are_dropped_repaired_and_divided(flags, tmp_path):
    folder = tmp_path / "new" / "out"
    sizes = ("--val_lines", "10", "--test_lines", "5")
    result = run_command.run("clean", *flags, *sizes, "--output_dir", str(folder))
    assert (result.status, result.err) == (0, "")
    dropped = [line.split("\t") for line in read(folder, "dropped.tsv")]
    assert dropped[0] == ["rule", "place", "source", "target"]
    assert dropped[1:] == [
        [rule, f"line {line}", source, target]
        for line, (rule, source, target) in enumerate(DIRTY, 21)
    ]
    pairs = {}
    for split, size in (("train", 88), ("val", 10), ("test", 5)):
        sides = read(folder, f"{split}.en"), read(folder, f"{split}.de")
        assert [len(side) for side in sides] == [size, size]
        pairs |= zip(*sides, strict=True)
    assert len(pairs) == 103
    assert pairs.items() >= CLEAN.items()
    assert "7 pairs dropped; kept: 88 train" in result.out
    assert "rule misaligned is off, because it needs 1,000 pairs" in result.out
    assert sorted(path.name for path in folder.parent.iterdir()) == ["out"]


def test_result_does_not_depend_on_workers_and_json_has_counts(flags, tmp_path):
    contents = []
    for workers in ("1", "3"):
        folder = tmp_path / workers
        arguments = [*flags, "--workers", workers, "--output_dir", str(folder)]
        report = json.loads(run_command.run("clean", *arguments, "--json").out)
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
        contents.append((report, files))
    assert contents[0] == contents[1]
    report = contents[0][0]
    assert report["dropped"] == {rule: 1 for rule, _, _ in DIRTY}
    assert report["kept"] == {"train": 93, "val": 5, "test": 5}
    assert report["repaired"] == {
        rule: 1 for rule in ("mojibake", "subwords", "entities", "tags", "tokens")
    }
    assert report["examples"]["tags"][0][1] == "A <b>green</b> lamp & a table"


def test_rules_are_switched_off_and_have_thresholds(flags, tmp_path):
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        "copy: false\nlength_ratio: 100\nlength_deviation: no\nlanguage: no\n"
        "entities: off\nnumbers: true\n"
    )
    folder = tmp_path / "out"
    arguments = [*flags, "--rules", str(rules), "--output_dir", str(folder)]
    assert run_command.run("clean", *arguments).status == 0
    dropped = {line.split("\t")[0] for line in read(folder, "dropped.tsv")[1:]}
    assert dropped == {"empty", "duplicate", "urls", "numbers"}
    lines = [*read(folder, "train.en"), *read(folder, "val.en")]
    assert "A green lamp &amp; a table" in [*lines, *read(folder, "test.en")]
    assert "It is raining again today, sadly." in [*lines, *read(folder, "test.en")]


def test_files_of_pairs_are_read_in_order(tmp_path):
    pairs = [(f"The clock shows {n}.", f"Die Uhr zeigt {n}.") for n in NUMBERS]
    first = "".join(f"{source}\t{target}\n" for source, target in pairs)
    (tmp_path / "a.tsv").write_text(first)
    (tmp_path / "b.tsv").write_text("The end.\tDas Ende.\nThe end.\tDas Ende.\n")
    (tmp_path / "rules.yaml").write_text("language: false\n")
    files = [str(tmp_path / name) for name in ("a.tsv", "b.tsv")]
    folder = str(tmp_path / "out")
    flags = "--source_lang en --target_lang de --workers 1 --val_lines 1 --test_lines 0"
    rules = ("--rules", str(tmp_path / "rules.yaml"), "--output_dir", folder)
    result = run_command.run("clean", *flags.split(), *rules, "--input", *files)
    assert result.status == 0, result.err
    place = f"{files[1]}: line 2"
    assert read(tmp_path / "out", "dropped.tsv")[1:] == [
        f"duplicate\t{place}\tThe end.\tDas Ende."
    ]
    assert len(read(tmp_path / "out", "train.en")) == 10
    assert not (tmp_path / "out" / "test.en").exists()


@pytest.mark.medium
def test_killed_run_is_continued_with_the_same_result(tmp_path):
    flags = ["--source_lang", "en", "--target_lang", "de", "--workers", "2"]
    for language, start, words in (
        ("en", "My numbers are", NUMBERS),
        ("de", "Meine Zahlen sind", ZAHLEN),
    ):
        lines = [
            " ".join([start, *(words[int(digit)] for digit in f"{n:05}")]) + ".\n"
            for n in range(30_000)
        ]
        (tmp_path / f"in.{language}").write_text("".join(lines), encoding="utf-8")
    flags += ["--input", *(str(tmp_path / f"in.{code}") for code in ("en", "de"))]
    whole, folder = tmp_path / "whole", tmp_path / "out"
    assert run_command.run("clean", *flags, "--output_dir", str(whole)).status == 0
    arguments = [*flags, "--output_dir", str(folder)]
    partial = tmp_path / "out.partial"
    for chunks, number in ((2, signal.SIGKILL), (3, signal.SIGINT)):
        process = run_command.start("clean", *arguments)
        while not (
            partial.exists() and partial.read_bytes().count(b'{"bytes"') >= chunks
        ):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        err = process.communicate()[1]
        assert not folder.exists()
    assert "pairs are checked; run the same command to resume" in err
    result = run_command.run("clean", *arguments)
    assert (result.status, "resuming after pair" in result.err) == (0, True)
    for path in whole.iterdir():
        assert (folder / path.name).read_bytes() == path.read_bytes()
    assert not partial.exists()


@pytest.mark.medium
def test_corpus_with_known_mistakes_is_cleaned(shared_dir, tmp_path):
    """A rule finds at least 95 % of each kind, and few good pairs are lost."""
    source = shared_dir / "formats" / "cleaning"
    if not source.is_dir():
        pytest.skip(f"no corpus with mistakes in {source}")
    folder = tmp_path / "out"
    flags = ["--source_lang", "en", "--target_lang", "de", "--output_dir", str(folder)]
    files = [str(source / f"dirty.{language}") for language in ("en", "de")]
    assert run_command.run("clean", *flags, "--input", *files).status == 0
    dropped = {line.split("\t")[1] for line in read(folder, "dropped.tsv")[1:]}
    lost = defaultdict(list)
    with open(source / "key.tsv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            kind = row["kind"]
            if row["note"].startswith("control"):
                kind = "control"
            lost[kind, row["action"]].append(f"line {row['line']}" in dropped)
    fractions = {key: sum(lines) / len(lines) for key, lines in lost.items()}
    assert Counter(action for _, action in fractions)["drop"] == 11
    for (kind, action), fraction in fractions.items():
        if action == "drop":
            assert fraction >= 0.95, kind
        else:
            assert fraction <= (0.1 if kind == "control" else 0.02), kind
    # These repairs are exact, except where the original has another apostrophe.
    assert fractions["good", "keep"] <= 0.02
