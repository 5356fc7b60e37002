"""Tests of BLEU against other programs and manual arithmetic."""

from __future__ import annotations

import json
import math

import pytest

from t2t_repro.evaluation.bleu import moses_tokens, multi_bleu, paper_bleu, sacre_bleu
from t2t_repro.system.atomic_file import read_lines
from t2t_repro.system.errors import UserError

# Computed with mosesdecoder's Perl scripts (tokenizer.perl of December 2016,
# replace-unicode-punctuation.perl, multi-bleu.perl) in the order of get_ende_bleu.sh.
_PERL_PAPER_BLEU = {
    "newstest2017.LIUM-NMT.4900.en-de": 26.83,
    "newstest2017.LMU-nmt-reranked.4934.en-de": 27.27,
    "newstest2017.SYSTRAN.4847.en-de": 26.93,
    "newstest2017.online-F.0.en-de": 15.97,
}


def test_agrees_with_the_test_cases_of_sacrebleu(shared_dir):
    path = shared_dir / "reference_scores/sacrebleu/bleu_cases.json"
    cases = json.loads(path.read_text())
    for case in cases["expected"]:
        result = sacre_bleu(
            cases["hyps"],
            *cases["refs"],
            tokenize=case["tokenize"],
            smooth_method=case.get("smooth_method", "exp"),
        )
        assert result.score == pytest.approx(case["bleu"], abs=1e-6)


def test_tokenized_ted_agrees_with_multi_bleu_perl(shared_dir):
    folder = shared_dir / "reference_scores/compare-mt"
    references = read_lines(folder / "ted.ref.eng")
    first = multi_bleu(read_lines(folder / "ted.sys1.eng"), references)
    second = multi_bleu(read_lines(folder / "ted.sys2.eng"), references)
    # Output of multi-bleu.perl: BLEU, precisions, brevity penalty and lengths.
    assert f"{first.score:.2f} {second.score:.2f}" == "22.44 24.04"
    assert [round(p, 1) for p in first.bleu.precisions] == [59.7, 30.3, 17.2, 10.1]
    assert round(first.bleu.bp, 3) == 0.947
    assert (first.bleu.sys_len, first.bleu.ref_len) == (45672, 48183)


def test_detokenized_ted_agrees_with_compare_mt(shared_dir):
    folder = shared_dir / "reference_scores/compare-mt"
    result = sacre_bleu(
        read_lines(folder / "ted.sys1.detok.eng"),
        read_lines(folder / "ted.ref.detok.eng"),
    )
    assert result.score == pytest.approx(21.7106, abs=1e-4)


@pytest.mark.parametrize("system", sorted(_PERL_PAPER_BLEU))
def test_paper_bleu_of_wmt17_systems_agrees_with_perl(shared_dir, system):
    folder = shared_dir / "reference_scores/wmt17_en_de_systems"
    result = paper_bleu(
        read_lines(folder / f"{system}.txt"), read_lines(folder / "reference.de"), "de"
    )
    assert round(result.score, 2) == _PERL_PAPER_BLEU[system]


@pytest.mark.parametrize(
    ("split", "expected", "expected_paper"),
    [("test_2016_flickr", 38.47, 38.47), ("val", 39.32, 39.30)],
)
def test_multi30k_outputs_of_tensor2tensor_have_the_recorded_scores(
    shared_dir, split, expected, expected_paper
):
    hypotheses = read_lines(
        shared_dir / f"t2t/multi30k_reference/{split}.tensor2tensor.de"
    )
    references = read_lines(shared_dir / f"corpora/multi30k/{split}.de")
    result = sacre_bleu(hypotheses, references)
    assert round(result.score, 2) == expected
    assert result.signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|")
    assert round(paper_bleu(hypotheses, references, "de").score, 2) == expected_paper


def test_multi_bleu_is_the_geometric_mean_of_precisions():
    # 4/5 words, 3/4 bigrams, 2/3 trigrams and 1/2 4-grams match; no brevity penalty.
    result = multi_bleu(["a b c d e"], ["a b c d f"])
    assert result.score == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)
    assert result.bleu.bp == 1.0


def test_short_output_has_a_brevity_penalty():
    # All n-grams match; the lengths are 4 and 6 words: exp(1 - 6/4).
    result = multi_bleu(["a b c d"], ["a b c d e f"])
    assert result.score == pytest.approx(100 * math.exp(1 - 6 / 4))
    assert result.bleu.bp == pytest.approx(math.exp(-0.5))


def test_multi_bleu_clips_counts_and_sums_over_the_corpus():
    # In line 1 "the" counts at most twice; line 2 matches completely. Unigrams:
    # (2+4)/8, bigrams: (0+3)/6, trigrams: (0+2)/4, 4-grams: (0+1)/2; 8 against 7 words.
    result = multi_bleu(["the the the the", "a b c d"], ["the x the", "a b c d"])
    assert result.score == pytest.approx(100 * (6 / 8 * 3 / 6 * 2 / 4 * 1 / 2) ** 0.25)


def test_multi_bleu_does_not_smooth():
    assert multi_bleu(["a b c x"], ["a b c d"]).score == 0.0
    assert sacre_bleu(["a b c x"], ["a b c d"], tokenize="none").score > 0.0


def test_splits_compounds_but_not_dashes():
    tokens = moses_tokens(
        ["Der „E-Mail-Verkehr“ \u2013 nun ja - d\u2019accord…"],
        "de",
        split_compounds=True,
    )
    # Output of the Perl scripts: the low quote and the long dash are not in their
    # table, and "-" between spaces is not part of a compound.
    assert tokens == [
        "Der „ E ##AT##-##AT## Mail ##AT##-##AT## Verkehr &quot; \u2013 nun ja "
        "- d &apos; accord ..."
    ]


def test_overlapping_hyphens_split_as_in_perl():
    # Output of perl -pe 's{(\S)-(\S)}{$1 ##AT##-##AT## $2}g'.
    assert moses_tokens(["aa-b-c"], "de", split_compounds=True) == [
        "aa ##AT##-##AT## b-c"
    ]


def test_only_german_compounds_are_split():
    lines = ["un rendez-vous avec la grand-mère ."]
    german = paper_bleu(lines, lines, "de")
    french = paper_bleu(lines, lines, "fr")
    assert german.bleu.sys_len == french.bleu.sys_len + 4
    assert "|compounds:split-at-hyphen|" in german.signature
    assert "|tok:moses-fr-nonaggressive|compounds:whole|" in french.signature


def test_splits_french_elisions_after_the_apostrophe():
    # tokenizer.perl -l fr keeps the apostrophe with the article.
    assert moses_tokens(["l'homme d'aujourd'hui."], "fr", split_compounds=False) == [
        "l&apos; homme d&apos; aujourd&apos; hui ."
    ]


@pytest.mark.parametrize("score", [sacre_bleu, multi_bleu])
def test_rejects_different_numbers_of_lines(score):
    with pytest.raises(UserError, match="2 hypotheses and 1 references"):
        score(["a", "b"], ["a"])
    with pytest.raises(UserError, match="2 hypotheses and 1 references"):
        paper_bleu(["a", "b"], ["a"], "de")


def test_rejects_empty_input():
    with pytest.raises(UserError, match="at least one line"):
        sacre_bleu([], [])
