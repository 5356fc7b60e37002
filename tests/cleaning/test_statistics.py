"""Tests of lengths, languages, stretches and splits, which look at many pairs."""

import itertools
import math
import random

import numpy as np
import pytest
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from t2t_repro.cleaning.alignment import PairScorer, find_stretches
from t2t_repro.cleaning.corpus import choose_splits
from t2t_repro.cleaning.language import LanguageOdds
from t2t_repro.cleaning.lengths import compute_deviations, compute_ratios
from t2t_repro.system.errors import UserError

TEXTS = [
    "The ferry leaves at noon.",
    "Die Fähre fährt mittags ab.",
    "Le bac part à midi.",
    "ALLE KINDER SPIELEN IM GARTEN",
    "Cafe\u0301",
    "12345",
    "",
]


def test_ratio_is_the_smaller_one_relative_to_the_median():
    # Words and characters of source and target. With 2 words and 10 characters added,
    # the ratios are 1 and 1.5, 1 and 1.5, 10 / 3 and 4.5; the medians are 1 and 1.5.
    lengths = [[[4, 10], [4, 20]], [[2, 10], [2, 20]], [[1, 10], [8, 80]]]
    # The words differ by a factor of 10 / 3, the characters by 4.5 / 1.5.
    np.testing.assert_allclose(compute_ratios(np.array(lengths)), [1, 1, 3])


def test_deviation_is_that_of_gale_and_church():
    targets = [100, 120, 80, 140, 300]
    lengths = np.array([[[1, 100], [1, target]] for target in targets])
    # The median ratio is 1.2; the deltas are |target - 120| / 10, their median is 2.
    expected = np.array([2, 0, 4, 2, 18]) / (1.4826 * 2)
    np.testing.assert_allclose(compute_deviations(lengths), expected)


def test_language_odds_are_those_of_py3langid():
    model = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    language = "de"
    *odds, empty = LanguageOdds().against(TEXTS, language)
    assert empty == 0
    for text, value in zip(TEXTS[:-1], odds, strict=True):
        ranked = model.rank(text)
        expected = math.log(ranked[0][1] / dict(ranked)[language])
        assert value == pytest.approx(expected, abs=1e-3), text


def test_misaligned_stretch_is_found():
    chance = random.Random(1)
    words = [(f"en{n}x", f"de{n}y") for n in range(200)]
    sentences = [chance.choices(words, k=8) for _ in range(1200)]
    sources = [" ".join(word[0] for word in sentence) for sentence in sentences]
    targets = [" ".join(word[1] for word in sentence) for sentence in sentences]
    wrong = slice(500, 530)
    targets[wrong] = targets[501:531]
    pairs = list(zip(sources, targets, strict=True))
    odds = PairScorer(pairs).log_odds(pairs, np.ones(len(pairs)))
    found = np.flatnonzero(find_stretches(odds, 1000))
    assert list(found) == list(range(500, 530))


def test_stretches_have_the_largest_sum():
    chance = random.Random(2)
    for _ in range(30):
        odds = [chance.uniform(-2, 2) for _ in range(9)]

        def total(choice, odds=odds):
            starts = sum(b and not a for a, b in itertools.pairwise((False, *choice)))
            chosen = sum(itertools.compress(odds, choice))
            return chosen - starts * math.log(3)

        best = max(itertools.product((False, True), repeat=9), key=total)
        assert find_stretches(odds, 3) == list(best)


def test_pairs_of_a_source_are_in_one_split_of_the_wanted_size():
    sources = np.array([5, 7, 7, 7, 9, 11, 5, 13], np.uint64)
    splits = choose_splits(sources, [3, 2])
    assert np.bincount(splits).tolist() == [3, 3, 2]
    for source in set(sources.tolist()):
        assert len(set(splits[sources == source])) == 1
    with pytest.raises(UserError, match="8 pairs remain, too few for 6 validation"):
        choose_splits(sources, [6, 2])
