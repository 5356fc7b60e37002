"""Tests of the scores of a split."""

import json
from dataclasses import asdict

import pytest
import sacrebleu

from t2t_repro.evaluation.split_scores import (
    evaluate,
    format_scores,
    select_score_class,
    speed,
)
from t2t_repro.system.atomic_file import read_lines
from t2t_repro.system.errors import UserError
from t2t_repro.texts.translation import Hypothesis, Translation


class TableTranslator:
    """Translator that looks up the translations in a table."""

    def __init__(self, table):
        self.table = table

    def translate_lines(self, lines, batch_size, window, progress):
        for line in lines:
            progress(1, 1)
            text = self.table[line]
            yield Translation((Hypothesis(text, -1.0, len(text.split()) + 1, -2.0),))


PAIRS = [
    ("one", "Das ist ein ziemlich langer Satz ."),
    ("two", "Hier steht noch ein ganz anderer Satz ."),
]


def test_perfect_translations_score_100():
    score, translations = evaluate(TableTranslator(dict(PAIRS)), PAIRS, "de")
    assert round(score.bleu, 6) == round(score.paper_bleu, 6) == 100
    assert score.sentences == 2
    assert score.tokens == 8 + 9
    assert [translation.text for translation in translations] == [t for _, t in PAIRS]


def test_score_agrees_with_sacrebleu():
    table = {"one": "Das ist ein Satz .", "two": "Hier steht ein ganz anderer Satz ."}
    score, _ = evaluate(TableTranslator(table), PAIRS, "de")
    references = [target for _, target in PAIRS]
    expected = sacrebleu.corpus_bleu([table["one"], table["two"]], [references])
    assert abs(score.bleu - expected.score) < 1e-9
    assert 0 < score.bleu < 100
    assert "tok:13a" in score.signature


@pytest.mark.parametrize(
    ("language", "text", "figure"),
    [("zh", "我喜欢狗。", "bleu"), ("th", "ฝนตก", "chrf")],
)
def test_languages_without_spaces_have_a_score_that_says_something(
    language, text, figure
):
    score, _ = evaluate(TableTranslator({"one": text}), [("one", text)], language)
    assert round(score.value, 6) == 100 == round(getattr(score, figure), 6)
    assert type(score) is select_score_class(language)
    assert score.figure.lower() == figure
    assert score.paper_bleu is None
    assert format_scores(asdict(score)) == score.figures()


def test_text_contains_each_score():
    score, _ = evaluate(TableTranslator(dict(PAIRS)), PAIRS, "de")
    first, second = score.figures().splitlines()
    assert first.startswith("BLEU 100.00  nrefs:1|case:mixed")
    assert second.startswith("the paper's BLEU 100.00  nrefs:1")
    assert set(asdict(score)) == {
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
    assert score.paper_bleu_original_quotes is None


def test_speed_is_in_tokens_per_second():
    assert speed(2000, 1500, 0.5) == "2,000 sentences in 0.5 s, 3,000 tokens/s"
    assert speed(0, 0, 0.0) == "0 sentences in 0.0 s, 0 tokens/s"


def test_newstest2014_has_paper_bleu_with_both_references(shared_dir):
    path = shared_dir / "corpora/wmt_newstest/en-de/newstest2014-deen.de"
    table = {str(n): line for n, line in enumerate(read_lines(path))}
    score, _ = evaluate(TableTranslator(table), list(table.items()), "de")
    first, second, third = score.figures().splitlines()
    assert first.startswith("BLEU 100.00  nrefs:1|case:mixed")
    assert "|refquotes:ascii|" in second
    assert third.startswith(
        "the paper's BLEU, original quotes 100.00  nrefs:1|case:mixed|eff:no|"
        "punct:ascii|tok:moses-de"
    )
    assert 98 < score.paper_bleu < 99
    assert format_scores(json.loads(json.dumps(asdict(score)))) == score.figures()


TREES = [
    ("the dog barks .", "S NP DT NN /NP VP VBZ /VP . /S"),
    ("tea -LRB- hot -RRB-", "FRAG NP NN /NP PRN -LRB- JJ -RRB- /PRN /FRAG"),
    ("she sings", "S NP PRP /NP VP VBZ /VP /S"),
]


def parse_score(*outputs):
    table = dict(zip([words for words, _ in TREES], outputs, strict=True))
    return evaluate(TableTranslator(table), TREES, "trees")


def test_perfect_parses_score_100_and_are_trees():
    score, parses = parse_score(*(tags for _, tags in TREES))
    assert (score.f1, score.complete_match, score.tagging) == (100, 100, 100)
    assert (score.repaired, score.f1_repaired_as_0, score.value) == (0, 100, 100)
    assert parses[0].text == "(TOP (S (NP (DT the) (NN dog)) (VP (VBZ barks)) (. .)))"
    assert score.figures().splitlines()[0] == (
        "F1 100.00  recall 100.00  precision 100.00  complete match 100.00  tagging "
        "100.00  (EVALB, COLLINS.prm, 0 errors)"
    )


def test_scores_with_and_without_repair():
    # The second output lacks an end tag, and its repair is correct. The third is empty,
    # and its repair is a flat S, one of the three correct brackets.
    outputs = TREES[0][1], "FRAG NP NN /NP PRN -LRB- JJ -RRB- /FRAG", ""
    score, parses = parse_score(*outputs)
    assert (score.repaired, score.repaired_brackets, score.repaired_tags) == (2, 1, 1)
    # The repaired parses have 3 + 3 + 1 brackets, all correct, of the treebank's 9. If
    # repaired parses count as 0, only the 3 brackets of the first parse remain.
    assert score.recall == 100 * 7 / 9
    assert score.precision == 100
    assert abs(score.f1 - 100 * 14 / 16) < 1e-9
    assert abs(score.f1_repaired_as_0 - 100 * 6 / 12) < 1e-9
    assert score.complete_match == 100 * 2 / 3
    # Two of 3 + 4 + 2 words have the wrong default part of speech.
    assert score.tagging == 100 * 7 / 9
    assert parses[2].text == "(TOP (S (NN she) (NN sings)))"
    assert score.figures().splitlines()[1] == (
        "F1 50.00 with the 2 of 3 outputs counted as 0 that needed repair (brackets 1, "
        "parts of speech 1)"
    )


def test_figures_of_a_result():
    parsed, _ = parse_score(*(tags for _, tags in TREES))
    translated, _ = evaluate(TableTranslator(dict(PAIRS)), PAIRS, "de")
    for score in (parsed, translated):
        assert format_scores({"steps": 3} | asdict(score)) == score.figures()
        assert select_score_class("trees" if score is parsed else "de") is type(score)
    assert format_scores({"steps": 3}) is None
    # Earlier versions did not write the second score.
    older = {k: v for k, v in asdict(translated).items() if "original" not in k}
    assert format_scores(older) == translated.figures()


def test_rejects_a_malformed_reference_tree():
    with pytest.raises(UserError, match="not a well-formed tree"):
        evaluate(TableTranslator({"tea": ""}), [("tea", "NP NN")], "trees")
