"""A score says what it is, how it was computed and of what."""

import sacrebleu

from t2t_repro.scoring import score
from t2t_repro.translator import Translation
from tests import tiny


class Reader:
    """Translates by a table, as a translator would."""

    def __init__(self, table):
        self.table = table

    def translate_lines(self, lines, batch_size, window, progress):
        for line in lines:
            progress(1)
            text = self.table[line]
            yield Translation(text, -1.0, len(text.split()) + 1, cut=False)


PAIRS = [
    ("one", "Das ist ein ziemlich langer Satz ."),
    ("two", "Hier steht noch ein ganz anderer Satz ."),
]


def test_perfect_translations_reach_one_hundred():
    found, translations = score(Reader(dict(PAIRS)), PAIRS, "de")
    assert round(found.bleu, 6) == round(found.paper_bleu, 6) == 100
    assert found.sentences == 2
    assert found.tokens == 8 + 9
    assert [translation.text for translation in translations] == [t for _, t in PAIRS]


def test_the_score_is_that_of_sacrebleu():
    table = {"one": "Das ist ein Satz .", "two": "Hier steht ein ganz anderer Satz ."}
    found, _ = score(Reader(table), PAIRS, "de")
    references = [target for _, target in PAIRS]
    expected = sacrebleu.corpus_bleu([table["one"], table["two"]], [references])
    assert abs(found.bleu - expected.score) < 1e-9
    assert 0 < found.bleu < 100
    assert "tok:13a" in found.signature


def test_the_text_names_each_figure():
    found, _ = score(Reader(dict(PAIRS)), PAIRS, "de")
    first, second, third = found.text().splitlines()
    assert first.startswith("BLEU 100.00  nrefs:1|case:mixed")
    assert second.startswith("the paper's BLEU 100.00  nrefs:1")
    assert third.startswith("2 sentences in ")
    assert set(found.to_dict()) == {
        "bleu",
        "signature",
        "paper_bleu",
        "paper_signature",
        "sentences",
        "tokens",
        "seconds",
    }


def test_the_result_of_a_training_is_its_score_of_the_test_split(trained):
    assert trained.result["sentences"] == tiny.SIZES["test"]
    assert 0 < trained.result["seconds"] < 60
