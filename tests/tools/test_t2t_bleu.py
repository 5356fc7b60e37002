"""Tests of tensor2tensor's BLEU against its recorded values and manual arithmetic."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from golden_checks.t2t_bleu import corpus_bleu, t2t_bleu, tokenize

from t2t_repro.system.errors import UserError


@pytest.fixture(scope="module")
def golden(shared_dir):
    return json.loads((shared_dir / "t2t/golden/bleu.json").read_text("utf-8"))


def test_bleu_equals_that_of_tensor2tensor(golden):
    assert len(golden["sets"]) == 4
    for case in golden["sets"]:
        first = slice(case["first_n"])
        lines = golden["hypothesis"][first], golden["reference"][first]
        # The recorded values are float32 numbers times 100.
        expected = case["bleu_cased"], case["bleu_uncased"]
        ours = t2t_bleu(*lines), t2t_bleu(*lines, cased=False)
        assert ours == pytest.approx(expected, rel=1e-7)


def test_tokens_equal_those_of_tensor2tensor(golden):
    assert len(golden["tokenize"]) == 20
    for case in golden["tokenize"]:
        assert tokenize(case["text"]) == case["tokens"]


def test_bleu_of_ids_equals_that_of_tensor2tensor_in_float32(golden):
    assert len(golden["compute_bleu_ids"]) == 8
    for case in golden["compute_bleu_ids"]:
        ours = corpus_bleu(case["reference"], case["hypothesis"])
        assert np.float32(ours) == np.float32(case["bleu"])


def test_bleu_is_close_to_that_of_sacrebleu_with_intl_tokens(golden):
    # All n-gram orders have matches, so only the tokenization could differ.
    from sacrebleu.metrics import BLEU

    metric = BLEU(tokenize="intl", force=True)
    hypotheses, references = golden["hypothesis"], golden["reference"]
    other = metric.corpus_score(hypotheses, [references]).score
    assert t2t_bleu(hypotheses, references) == pytest.approx(other, abs=1e-4)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("in 1999.", ["in", "1999."]),  # mteval-v14 does the same.
        ("in 1999. Und", ["in", "1999", ".", "Und"]),
        (".5 und 5%", [".5", "und", "5%"]),
        ("3-4 a-b 3-b", ["3-4", "a", "-", "b", "3", "-", "b"]),
        ("na...", ["na", ".", ".", "."]),
        ("$5+5", ["$", "5", "+", "5"]),
        ("[a^b]|c", ["[", "a", "^", "b", "]", "|", "c"]),
        ("x\u00a0y\u2028z", ["x", "y", "z"]),
        ("\u0664.\u0664", ["\u0664.\u0664"]),  # Applies to digits of all scripts.
    ],
)
def test_tokenizes_text(text, tokens):
    assert tokenize(text) == tokens


def test_smooths_orders_without_a_match():
    # Matches: 2 of 4 unigrams; none of 3 bigrams, 2 trigrams and 1 4-gram.
    expected = (2 / 4 * 1 / (2 * 3) * 1 / (4 * 2) * 1 / (8 * 1)) ** (1 / 4)
    assert corpus_bleu([[1, 2, 3, 4]], [[1, 9, 3, 8]]) == pytest.approx(expected)


def test_ignores_orders_longer_than_the_hypotheses():
    # Matches: 2 of 2 unigrams, 1 of 1 bigram; there are no trigrams.
    assert corpus_bleu([["a", "b"]], [["a", "b"]]) == 1.0
    assert corpus_bleu([["a", "b"]], [["a", "c"]]) == pytest.approx(
        (1 / 2 * 1 / 2) ** (1 / 4)
    )


def test_matches_of_a_token_are_limited_by_its_count_in_the_reference():
    # Matches: 2 of 3 unigrams, 1 of 2 bigrams, 0 of 1 trigram; there are no 4-grams.
    expected = (2 / 3 * 1 / 2 * 1 / 2) ** (1 / 4)
    assert corpus_bleu([[7, 7, 5]], [[7, 7, 7]]) == pytest.approx(expected)


def test_penalizes_short_and_long_hypotheses():
    long, short = [[1, 2, 3, 4, 5, 6]], [[1, 2, 3, 4]]
    assert corpus_bleu(long, short) == pytest.approx(math.exp(1 - 6 / 4))
    expected = (4 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** (1 / 4)
    assert corpus_bleu(short, long) == pytest.approx(expected)


def test_bleu_of_empty_hypotheses_and_references():
    assert corpus_bleu([[1, 2]], [[]]) == 0.0
    # One word without a match: (1 / (2 * 1)) ** (1 / 4), as in tensor2tensor.
    assert corpus_bleu([[]], [[1]]) == pytest.approx(0.5**0.25)


def test_rejects_unequal_numbers_of_lines():
    with pytest.raises(UserError, match="2 hypotheses and 1 references"):
        t2t_bleu(["a", "b"], ["a"])
    with pytest.raises(UserError, match="at least one line"):
        t2t_bleu([], [])
