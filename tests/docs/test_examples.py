"""Example sentences for the quick start's model in pages and notebooks.

`EXAMPLES` has their translations, written by hand. The quick tests compare the pages
with it; the slow test trains a model like the quick start and compares its output.
"""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path

import pytest
import quickstart_report

from t2t_repro.problems import create
from tests import run_command
from tests.docs.blocks import PAGES
from tests.run_command import ROOT

EXAMPLES = {
    "half past four": "halb fünf",
    "half past four on the twenty-first of May": "halb fünf am einundzwanzigsten Mai",
    "on the twenty-first of May": "am einundzwanzigsten Mai",
    "seventeen euros": "siebzehn Euro",
    "twenty-one": "einundzwanzig",
    "half past nine on the nineteenth of May": "halb zehn am neunzehnten Mai",
    "the heavy table costs seventeen euros and forty-nine cents": (
        "der schwere Tisch kostet siebzehn Euro und neunundvierzig Cent"
    ),
    "the bus to Cologne leaves at eight minutes past eleven": (
        "der Bus nach Köln fährt um acht Minuten nach elf ab"
    ),
    "the farmer will pick up a box with five hundred and fifty shirts": (
        "der Bauer wird eine Kiste mit fünfhundertfünfzig Hemden abholen"
    ),
    "the beautiful book will cost two hundred euros": (
        "das schöne Buch wird zweihundert Euro kosten"
    ),
    "on the eighteenth of June the match ended": "am achtzehnten Juni endete das Spiel",
}
# Quoted words of the corpus that are not example inputs.
NOT_INPUTS = {"one-and-twenty", "one", "four"}
SHOWN_IN = [
    *(page for page in PAGES if page.name != "CHANGELOG.md"),
    *sorted((ROOT / "colab").glob("*.py")),
    *(ROOT / "docs" / "conf.py", ROOT / "tools" / "check_package.py"),
    *sorted((ROOT / "t2t_repro").glob("*.py")),
    *sorted((ROOT / "t2t_repro" / "command_line").glob("*.py")),
    *sorted((ROOT / "t2t_repro").rglob("*.html")),
    *sorted((ROOT / "t2t_repro").rglob("*.js")),
]
QUOTED = re.compile(r"\"([^\"\n]+)\"|'([^'\n]+)'|\*([^*\n]+)\*")


ENGLISH_NUMBER = re.compile(
    r"\b(half|one|two|three|four|five|eight|eleven|\w+teenth?|twenty|euros?)\b"
)
GERMAN_NUMBER = re.compile(r"\b(halb|eins|zwei|\w+zehn|\w+zwanzig\w*|Euro)\b")


def words(text: str) -> list[str]:
    return re.sub(r"[-.,]", " ", text.lower()).split()


@functools.cache
def vocabulary(side: int) -> set[str]:
    pairs = create("translate_ende_numbers").pairs("train")
    return {word for pair in pairs for word in words(pair[side])}


def quoted(pages: list[Path], side: int) -> set[str]:
    """Returns quoted or emphasized text that contains a number and only corpus words.

    `side` is 0 for English and 1 for German.
    """
    number = (ENGLISH_NUMBER, GERMAN_NUMBER)[side]
    parts = {
        part
        for page in pages
        for match in QUOTED.finditer(page.read_text(encoding="utf-8"))
        for part in next(filter(None, match.groups())).split("\\n")
    }
    return {
        part
        for part in parts
        if number.search(part) and vocabulary(side).issuperset(words(part))
    }


def test_english_sentences_in_pages_are_examples() -> None:
    shown = quickstart_report.read(quickstart_report.SENTENCES)
    assert quoted(SHOWN_IN, 0) - NOT_INPUTS | set(shown) == set(EXAMPLES)


def test_german_sentences_in_pages_are_translations_of_examples() -> None:
    sentences = quoted(SHOWN_IN, 1)
    assert sentences
    assert sentences <= set(EXAMPLES.values())


def test_quickstart_report_includes_the_sentences_of_the_first_pages() -> None:
    sentences = quoted([ROOT / "README.md", ROOT / "docs" / "index.md"], 0)
    assert sentences
    shown = quickstart_report.read(quickstart_report.SENTENCES)
    assert sentences <= set(shown)
    assert {source: german for source, [german] in shown.items()}.items() <= (
        EXAMPLES.items()
    )


@pytest.mark.slow
def test_quick_start_model_translates_examples_and_visitor_inputs(tmp_path):
    """Trains like tools/quickstart.sh, which takes five minutes on two cores."""
    model = str(tmp_path / "model")
    flags = ("--hparams", "tiny", "--problem", "translate_ende_numbers")
    folders = ("--model_dir", model, "--data_dir", str(tmp_path / "data"))
    assert run_command.run_alone("train", *flags, *folders).status == 0
    accepted = quickstart_report.read(quickstart_report.VISITOR_INPUTS)
    inputs = "".join(f"{line}\n" for line in (*EXAMPLES, *accepted))
    process = run_command.run_alone("translate", "--model_dir", model, input=inputs)
    lines = process.out.splitlines()
    assert dict(zip(EXAMPLES, lines, strict=False)) == EXAMPLES
    answers = lines[len(EXAMPLES) :]
    correct = sum(
        answer in accepted[en] for en, answer in zip(accepted, answers, strict=True)
    )
    assert correct >= 0.95 * len(accepted) >= 0.95 * 60
    result = json.loads((tmp_path / "model" / "result.json").read_text("utf-8"))
    assert result["bleu"] >= 99
