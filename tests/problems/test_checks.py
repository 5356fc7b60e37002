"""Tests of the detection of mistakes in a corpus."""

import pytest

from t2t_repro.problems.checks import Checks, wmt16_for_wmt14
from t2t_repro.problems.files import FilesProblem
from t2t_repro.problems.problem import Problem
from t2t_repro.problems.translate_ende_numbers import TranslateEndeNumbers

ENGLISH = (
    "The cat sleeps on the warm roof of the house.",
    "Two children play with a small dog in the garden.",
    "She has bought three books about the history of the town.",
    "Why do you not come with us to the station?",
    "Nobody knows when the next train will arrive.",
    "It has been raining since the early morning.",
)
GERMAN = (
    "Die Katze schläft auf dem warmen Dach des Hauses.",
    "Zwei Kinder spielen mit einem kleinen Hund im Garten.",
    "Sie hat drei Bücher über die Geschichte der Stadt gekauft.",
    "Warum kommst du nicht mit uns zum Bahnhof?",
    "Niemand weiß, wann der nächste Zug ankommen wird.",
    "Es regnet schon seit dem frühen Morgen.",
)


@pytest.fixture
def corpus(tmp_path):
    """Writes four training pairs, a validation pair and a test pair.

    Returns a function that overwrites a file.
    """

    def write(name, lines):
        text = "".join(f"{line}\n" for line in lines)
        (tmp_path / name).write_text(text, encoding="utf-8")

    for lang, lines in (("en", ENGLISH), ("de", GERMAN)):
        write(f"train.{lang}", lines[:4])
        write(f"val.{lang}", lines[4:5])
        write(f"test.{lang}", lines[5:])
    return write


def findings(folder, *held_out):
    problem = FilesProblem(str(folder), "en", "de")
    return Checks(problem, held_out or ("val", "test")).findings()


def test_no_findings_in_a_good_corpus(corpus, tmp_path):
    assert findings(tmp_path) == []


def test_no_findings_in_the_built_in_corpus():
    assert Checks(TranslateEndeNumbers(), ("val", "test")).findings() == []


def test_detects_splits_of_which_most_pairs_have_equal_sides(corpus, tmp_path):
    corpus("train.de", [*ENGLISH[:2], *GERMAN[2:4]])
    assert not any("equal" in line for line in findings(tmp_path))
    corpus("train.de", [*ENGLISH[:3], GERMAN[3]])
    corpus("test.de", ENGLISH[5:])
    lines = [line for line in findings(tmp_path) if "equal" in line]
    assert lines == [
        f"{counts} pairs have equal sides: are the en and de files copies of each "
        "other?"
        for counts in ("3 of 4 train", "1 of 1 test")
    ]


@pytest.mark.parametrize("split", ["val", "test"])
def test_detects_swapped_sides_of_a_single_pair(corpus, tmp_path, split):
    line = 4 if split == "val" else 5
    corpus(f"{split}.en", GERMAN[line : line + 1])
    corpus(f"{split}.de", ENGLISH[line : line + 1])
    (message,) = findings(tmp_path)
    assert message == (
        f"the source side of the {split} split looks like the target side of the "
        "training data, and vice versa: are its en and de files swapped?"
    )


def test_ignores_swapped_sides_of_one_language(corpus, tmp_path):
    for split, lines in (("train", ENGLISH[:4]), ("val", ENGLISH[4:])):
        corpus(f"{split}.en", lines)
        corpus(f"{split}.de", lines[::-1])
    assert findings(tmp_path, "val") == []


def test_counts_held_out_pairs_in_the_training_data(corpus, tmp_path):
    corpus("test.en", [ENGLISH[5], ENGLISH[1], ENGLISH[2], ENGLISH[1]])
    # A pair with the same source and another target does not count.
    corpus("test.de", [GERMAN[5], GERMAN[1], GERMAN[3], GERMAN[1]])
    (message,) = findings(tmp_path)
    assert message.startswith(
        "2 of 4 test pairs (50.0%) are also in the training data:"
    )


def test_reads_only_the_requested_splits(corpus, tmp_path):
    (tmp_path / "test.en").unlink()
    assert findings(tmp_path, "val") == []


def test_compares_pairs_after_the_sample(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("t2t_repro.problems.checks._SAMPLE", 1)
    corpus("val.en", [ENGLISH[4], ENGLISH[3]])
    corpus("val.de", [GERMAN[4], GERMAN[3]])
    (message,) = findings(tmp_path)
    assert message.startswith("1 of 2 val pairs (50.0%)")


@pytest.mark.parametrize("pairs", [4_548_885, 4_562_102, 4_500_966])
def test_detects_wmt16_by_its_size_in_both_directions(pairs):
    message = wmt16_for_wmt14(pairs, "en", "de")
    assert message is not None
    assert message.startswith(f"the training data has {pairs:,} pairs, the size of WMT")
    assert "the paper trained on the 4,508,785 pairs of WMT14" in message
    assert wmt16_for_wmt14(pairs, "de", "en") == message
    assert wmt16_for_wmt14(pairs, "en", "fr") is None


# Numbers of pairs: WMT14 and tensor2tensor's mixture, both from the catalog of
# TensorFlow Datasets, and the corpus of Luong et al. 2015.
@pytest.mark.parametrize("pairs", [4_508_785, 4_592_289, 4_468_840])
def test_other_corpora_of_similar_size_are_not_wmt16(pairs):
    assert wmt16_for_wmt14(pairs, "en", "de") is None


def test_checks_both_sides_of_a_monolingual_problem():
    class Spelling(Problem):
        name, source_lang, target_lang = "spelling", "en", "en"

        def pairs(self, split):
            yield from [("res@@ ume", "resume")] * 3

    (message,) = [t for t in Checks(Spelling(), ("val",)).findings() if "BPE" in t]
    assert "3 of 3 lines of train.en, 3 of 3 lines of val.en" in message
