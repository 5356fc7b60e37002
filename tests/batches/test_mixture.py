"""Mixtures of corpora: shares, order and resuming at a step."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_repro.batches import pipeline
from t2t_repro.batches.batching import BatchingConfig, plan_epoch
from t2t_repro.batches.mixture import Mixture
from t2t_repro.data.encoded_pairs import EncodedPairs
from tests.properties import checked

SIZES = (120, 70)
CONFIG = BatchingConfig(300)
WEIGHTS = st.lists(st.integers(1, 40), min_size=1, max_size=4)


def pairs(size, first):
    """Returns pairs of random lengths whose ids are the pair's number, from `first`."""
    sizes = np.random.default_rng(first).integers(1, 30, (size, 2))
    return EncodedPairs.from_lists(
        *(
            [[first + n] * int(length) for n, length in enumerate(side)]
            for side in sizes.T
        )
    )


@pytest.fixture(scope="module")
def corpora():
    """Two corpora, of which the first has two shards."""
    first = [pairs(SIZES[0] - 50, 2), pairs(50, SIZES[0] - 48)]
    return [EncodedPairs.join(first), pairs(SIZES[1], 1000)]


def take(dataset, count):
    return [
        {name: values.tolist() for name, values in batch.items()}
        for batch in dataset.take(count).as_numpy_iterator()
    ]


def test_shares_of_a_thousand_steps_are_those_of_the_weights():
    mixture = Mixture(SIZES, (1, 3))
    corpora = [mixture.corpus(step) for step in range(1000)]
    assert [corpora.count(0), corpora.count(1)] == [250, 750]
    assert corpora[:8] == [1, 0, 1, 1] * 2


@checked
@given(WEIGHTS, st.integers(0, 500))
def test_each_share_is_exact_to_less_than_one_batch_per_corpus(weights, steps):
    mixture = Mixture((1,) * len(weights), tuple(weights))
    taken = [mixture.corpus(step) for step in range(steps)]
    for corpus, weight in enumerate(weights):
        number = mixture.batches_before(steps, corpus)
        assert number == taken.count(corpus)
        due = steps * weight / sum(weights)
        assert 1 - len(weights) - 1e-9 < number - due < 1


@pytest.mark.parametrize("weights", [(1, 3), (2, 1)])
def test_each_corpus_provides_its_own_batches_in_turn(corpora, weights):
    mixture = Mixture(SIZES, weights)
    joined = EncodedPairs.join(corpora)
    mixed = take(pipeline.batches(joined, CONFIG, 9, mixture=mixture), 40)
    # Each corpus has passed its first epoch.
    alone = [iter(take(pipeline.batches(c, CONFIG, 9), 40)) for c in corpora]
    assert mixed == [next(alone[mixture.corpus(step)]) for step in range(40)]
    epochs = [plan_epoch(c.lengths, CONFIG, 9, 0).batches for c in corpora]
    assert [mixture.batches_before(40, n) > epochs[n] for n in (0, 1)] == [True, True]
    for step in (7, 26):
        resumed = pipeline.batches(joined, CONFIG, 9, step, mixture=mixture)
        assert take(resumed, 40 - step) == mixed[step:]


def test_pair_numbers_are_those_of_the_corpus(corpora):
    mixture = Mixture(SIZES, (1, 3))
    joined = EncodedPairs.join(corpora)
    found = [
        pipeline.pair_numbers(joined, CONFIG, 9, step, mixture) for step in range(40)
    ]
    for step, numbers in enumerate(found):
        expected = (0, 120) if mixture.corpus(step) == 0 else (120, 190)
        assert expected[0] <= numbers.min() <= numbers.max() < expected[1]
    first = [n for step, n in enumerate(found) if mixture.corpus(step) == 1]
    epoch = plan_epoch(corpora[1].lengths, CONFIG, 9, 0).batches
    assert sorted(itertools.chain(*first[:epoch])) == list(range(120, 190))
