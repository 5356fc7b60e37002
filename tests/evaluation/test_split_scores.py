"""A score says what it is, how it was computed and of what."""

import json

import pytest
import sacrebleu

from t2t_repro.evaluation.split_scores import evaluate, figures_of, kind_of_score
from t2t_repro.system.atomic_file import read_lines
from t2t_repro.system.errors import UserError
from t2t_repro.translation.translator import Translation
from tests import tiny


class Reader:
    """Translates by a table, as a translator would."""

    def __init__(self, table):
        self.table = table

    def translate_lines(self, lines, batch_size, window, progress):
        for line in lines:
            progress(1, 1)
            text = self.table[line]
            yield Translation(text, -1.0, len(text.split()) + 1, -2.0, cut=False)


PAIRS = [
    ("one", "Das ist ein ziemlich langer Satz ."),
    ("two", "Hier steht noch ein ganz anderer Satz ."),
]


def test_perfect_translations_reach_one_hundred():
    found, translations = evaluate(Reader(dict(PAIRS)), PAIRS, "de")
    assert round(found.bleu, 6) == round(found.paper_bleu, 6) == 100
    assert found.sentences == 2
    assert found.tokens == 8 + 9
    assert [translation.text for translation in translations] == [t for _, t in PAIRS]


def test_the_score_is_that_of_sacrebleu():
    table = {"one": "Das ist ein Satz .", "two": "Hier steht ein ganz anderer Satz ."}
    found, _ = evaluate(Reader(table), PAIRS, "de")
    references = [target for _, target in PAIRS]
    expected = sacrebleu.corpus_bleu([table["one"], table["two"]], [references])
    assert abs(found.bleu - expected.score) < 1e-9
    assert 0 < found.bleu < 100
    assert "tok:13a" in found.signature


def test_the_text_names_each_figure():
    found, _ = evaluate(Reader(dict(PAIRS)), PAIRS, "de")
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
        "paper_bleu_original_quotes",
        "paper_signature_original_quotes",
    }
    assert found.paper_bleu_original_quotes is None


def test_newstest2014_has_the_papers_figure_with_both_references(shared_dir):
    path = shared_dir / "corpora/wmt_newstest/en-de/newstest2014-deen.de"
    table = {str(n): line for n, line in enumerate(read_lines(path))}
    found, _ = evaluate(Reader(table), list(table.items()), "de")
    first, second, third = found.figures().splitlines()
    assert first.startswith("BLEU 100.00  nrefs:1|case:mixed")
    assert "|refquotes:ascii|" in second
    assert third.startswith(
        "the paper's BLEU, original quotes 100.00  nrefs:1|case:mixed|eff:no|"
        "punct:ascii|tok:moses-de"
    )
    assert 98 < found.paper_bleu < 99
    assert figures_of(json.loads(json.dumps(found.to_dict()))) == found.figures()


def test_the_result_of_a_training_is_its_score_of_the_test_split(trained):
    assert trained.result["sentences"] == tiny.SIZES["test"]
    assert 0 < trained.result["seconds"] < 60


TREES = [
    ("the dog barks .", "S NP DT NN /NP VP VBZ /VP . /S"),
    ("tea -LRB- hot -RRB-", "FRAG NP NN /NP PRN -LRB- JJ -RRB- /PRN /FRAG"),
    ("she sings", "S NP PRP /NP VP VBZ /VP /S"),
]


def parse_score(*outputs):
    table = dict(zip([words for words, _ in TREES], outputs, strict=True))
    return evaluate(Reader(table), TREES, "trees")


def test_perfect_parses_reach_one_hundred_and_come_back_as_trees():
    found, parses = parse_score(*(tags for _, tags in TREES))
    assert (found.f1, found.complete_match, found.tagging) == (100, 100, 100)
    assert (found.repaired, found.f1_repaired_as_0, found.value) == (0, 100, 100)
    assert parses[0].text == "(TOP (S (NP (DT the) (NN dog)) (VP (VBZ barks)) (. .)))"
    assert found.text().splitlines()[0] == (
        "F1 100.00  recall 100.00  precision 100.00  complete match 100.00  tagging "
        "100.00  (EVALB, COLLINS.prm, 0 errors)"
    )


def test_an_output_that_needed_repair_counts_twice_differently():
    # The second lacks an end: repaired it is right. The third says nothing: repaired it
    # is a flat S, which is one of its three brackets.
    outputs = TREES[0][1], "FRAG NP NN /NP PRN -LRB- JJ -RRB- /FRAG", ""
    found, parses = parse_score(*outputs)
    assert (found.repaired, found.repaired_brackets, found.repaired_tags) == (2, 1, 1)
    # Brackets: 3 of 3, 3 of 3, 1 of 3 where 1 was given; then 3 of 9 where 3 were.
    assert found.recall == 100 * 7 / 9
    assert found.precision == 100
    assert abs(found.f1 - 100 * 14 / 16) < 1e-9
    assert abs(found.f1_repaired_as_0 - 100 * 6 / 12) < 1e-9
    assert found.complete_match == 100 * 2 / 3
    # Of 3, 4 and 2 words two have a part of speech by default.
    assert found.tagging == 100 * 7 / 9
    assert parses[2].text == "(TOP (S (NN she) (NN sings)))"
    assert found.figures().splitlines()[1] == (
        "F1 50.00 with the 2 of 3 outputs counted as 0 that needed repair (brackets 1, "
        "parts of speech 1)"
    )


def test_a_result_is_described_by_its_figures():
    parsed, _ = parse_score(*(tags for _, tags in TREES))
    translated, _ = evaluate(Reader(dict(PAIRS)), PAIRS, "de")
    for found in (parsed, translated):
        assert figures_of({"steps": 3} | found.to_dict()) == found.figures()
        assert kind_of_score("trees" if found is parsed else "de") is type(found)
    assert figures_of({"steps": 3}) is None
    # As versions without the second figure wrote it.
    older = {k: v for k, v in translated.to_dict().items() if "original" not in k}
    assert figures_of(older) == translated.figures()


def test_a_reference_that_is_no_tree_is_refused():
    with pytest.raises(UserError, match="not a well-formed tree"):
        evaluate(Reader({"tea": ""}), [("tea", "NP NN")], "trees")
