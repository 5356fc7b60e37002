"""tensor2tensor's BLEU against its own figures, and against hand arithmetic."""

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


def test_t2t_bleu_is_tensor2tensors_cased_and_uncased(golden):
    assert len(golden["sets"]) == 4
    for case in golden["sets"]:
        first = slice(case["first_n"])
        lines = golden["hypothesis"][first], golden["reference"][first]
        # Recorded as 100 times a float32.
        expected = case["bleu_cased"], case["bleu_uncased"]
        found = t2t_bleu(*lines), t2t_bleu(*lines, cased=False)
        assert found == pytest.approx(expected, rel=1e-7)


def test_tokens_are_tensor2tensors(golden):
    assert len(golden["tokenize"]) == 20
    for case in golden["tokenize"]:
        assert tokenize(case["text"]) == case["tokens"]


def test_bleu_of_ids_is_tensor2tensors_in_every_bit_of_its_float32(golden):
    assert len(golden["compute_bleu_ids"]) == 8
    for case in golden["compute_bleu_ids"]:
        found = corpus_bleu(case["reference"], case["hypothesis"])
        assert np.float32(found) == np.float32(case["bleu"])


def test_sacrebleus_intl_tokens_give_nearly_the_same_figure(golden):
    # Another program with mteval-v14's tokens; no order is without a match here.
    from sacrebleu.metrics import BLEU

    metric = BLEU(tokenize="intl", force=True)
    hypotheses, references = golden["hypothesis"], golden["reference"]
    other = metric.corpus_score(hypotheses, [references]).score
    assert t2t_bleu(hypotheses, references) == pytest.approx(other, abs=1e-4)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("in 1999.", ["in", "1999."]),  # mteval-v14's own oddity
        ("in 1999. Und", ["in", "1999", ".", "Und"]),
        (".5 und 5%", [".5", "und", "5%"]),
        ("3-4 a-b 3-b", ["3-4", "a", "-", "b", "3", "-", "b"]),
        ("na...", ["na", ".", ".", "."]),
        ("$5+5", ["$", "5", "+", "5"]),
        ("[a^b]|c", ["[", "a", "^", "b", "]", "|", "c"]),
        ("x\u00a0y\u2028z", ["x", "y", "z"]),
        ("\u0664.\u0664", ["\u0664.\u0664"]),  # digits of any script are digits
    ],
)
def test_a_text_is_cut_by_the_rules(text, tokens):
    assert tokenize(text) == tokens


def test_orders_without_a_match_are_halved_one_after_the_other():
    # Words 2/4; 3 pairs, 2 triples and 1 quadruple without a match.
    expected = (2 / 4 * 1 / (2 * 3) * 1 / (4 * 2) * 1 / (8 * 1)) ** (1 / 4)
    assert corpus_bleu([[1, 2, 3, 4]], [[1, 9, 3, 8]]) == pytest.approx(expected)


def test_an_order_that_is_too_long_is_passed_over():
    # Words 2/2, pairs 1/1, no triples at all: 1, not 0.
    assert corpus_bleu([["a", "b"]], [["a", "b"]]) == 1.0
    assert corpus_bleu([["a", "b"]], [["a", "c"]]) == pytest.approx(
        (1 / 2 * 1 / 2) ** (1 / 4)
    )


def test_repeated_symbols_match_as_often_as_the_reference_has_them():
    # Words 2/3, pairs 1/2, the triple without a match, no quadruple.
    expected = (2 / 3 * 1 / 2 * 1 / 2) ** (1 / 4)
    assert corpus_bleu([[7, 7, 5]], [[7, 7, 7]]) == pytest.approx(expected)


def test_a_short_output_pays_and_a_long_one_has_less_precision():
    long, short = [[1, 2, 3, 4, 5, 6]], [[1, 2, 3, 4]]
    assert corpus_bleu(long, short) == pytest.approx(math.exp(1 - 6 / 4))
    expected = (4 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** (1 / 4)
    assert corpus_bleu(short, long) == pytest.approx(expected)


def test_empty_outputs_score_nothing_and_empty_references_cost_no_penalty():
    assert corpus_bleu([[1, 2]], [[]]) == 0.0
    # One word without a match: (1 / (2 * 1)) ** (1 / 4), as in tensor2tensor.
    assert corpus_bleu([[]], [[1]]) == pytest.approx(0.5**0.25)


def test_unequal_numbers_of_lines_are_refused():
    with pytest.raises(UserError, match="2 hypotheses and 1 references"):
        t2t_bleu(["a", "b"], ["a"])
    with pytest.raises(UserError, match="at least one line"):
        t2t_bleu([], [])
