"""Batches of real corpora have little padding and change with the epoch."""

import itertools

import numpy as np
import pytest

from t2t_repro.batches.batching import BatchingConfig, plan_epoch
from t2t_repro.data.shard_encoding import Chunk, encode_chunks
from t2t_repro.hparams import HParams
from t2t_repro.system.atomic_file import iterate_pairs
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.vocabulary import build_vocabulary

NEWSTESTS = ("2010", "2011", "2012", "2013", "2014-deen", "2016-ende", "2017-ende")
STEMS = {
    "multi30k": ["multi30k/train"],
    "tatoeba": ["tatoeba-en-de/train"],
    "newstest": [f"wmt_newstest/en-de/newstest{year}" for year in NEWSTESTS],
}


def together_again(one, other):
    """Returns the fraction of combinations that share a batch again.

    A combination is two sentence pairs that share a batch in the first epoch. `one` and
    `other` are int (pairs,), the batch of each sentence pair in the two epochs.
    """
    _, both = np.unique(np.stack([one, other]), axis=1, return_counts=True)
    before = np.bincount(one)
    return (both * (both - 1)).sum() / (before * (before - 1)).sum()


def batch_of_pairs(plan):
    """Returns the batch of every used pair, in the order of pair numbers."""
    numbers = [plan.indices(batch) for batch in range(plan.batches)]
    batch = np.repeat(np.arange(plan.batches), [len(pairs) for pairs in numbers])
    return batch[np.argsort(np.concatenate(numbers))]


def test_pairs_in_the_same_batch_again_are_counted():
    # The first batches, (0, 1, 2) and (3, 4), have three combinations and one. The
    # combinations (0, 1) and (3, 4) share a batch again.
    one, other = np.array([0, 0, 0, 1, 1]), np.array([1, 1, 0, 0, 0])
    assert together_again(one, other) == 2 / 4


@pytest.fixture(scope="module")
def corpora(shared_dir):
    """Sentence pairs of each corpus."""
    return {
        name: [
            pair
            for file in (shared_dir / "corpora" / stem for stem in stems)
            for pair in iterate_pairs(f"{file}.en", f"{file}.de")
        ]
        for name, stems in STEMS.items()
    }


@pytest.fixture(scope="module")
def tokenizer(corpora, tmp_path_factory):
    """A vocabulary of 16,000 pieces."""
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.model"
    # More lines would hardly change the lengths.
    pairs = [pair for each in corpora.values() for pair in each[:7_000]]
    lines = itertools.chain.from_iterable(pairs)
    build_vocabulary("sentencepiece", lines, 16_000, path)
    return load_tokenizer(path)


@pytest.fixture(scope="module", params=STEMS)
def lengths(request, corpora, tokenizer):
    """Lengths of a corpus in tokens, int32 (pairs, 2)."""
    chunks = [Chunk(0, corpora[request.param])]
    (encoded,) = encode_chunks(chunks, tokenizer.make_plain, np.int32)
    return encoded.lengths


@pytest.mark.medium
def test_batches_of_the_paper_size_have_little_padding(lengths):
    """Batches of 25,000 positions per side, micro-batches of at most 3,571."""
    settings = HParams().resolve_auto()
    for kind, least in (("sorted", 0.96), ("buckets", 0.93)):
        plans = {
            (bound, epoch): plan_epoch(
                lengths,
                BatchingConfig(
                    tokens_per_batch=settings.tokens_per_batch,
                    kind=kind,
                    max_length=settings.max_length,
                    tokens_per_microbatch=bound,
                ),
                settings.seed,
                epoch,
            )
            for bound in (settings.tokens_per_batch, settings.tokens_per_microbatch)
            for epoch in (0, 1)
        }
        plan = plans[settings.tokens_per_microbatch, 0]
        assert plan.token_ratio >= least
        assert plan.dropped / len(lengths) <= 0.001
        assert plan.sizes.mean() / settings.tokens_per_batch > 0.85
        assert kind == "sorted" or plan.distinct_shapes <= 48
        # Micro-batches are dealt at random, so fewer pairs share a batch again than in
        # batches of one micro-batch.
        again = {
            bound: together_again(
                *(batch_of_pairs(plans[bound, epoch]) for epoch in (0, 1))
            )
            for bound, _ in plans
        }
        one_microbatch, several = again.values()
        assert several < one_microbatch


@pytest.mark.medium
def test_packed_rows_have_little_padding_in_one_shape(lengths):
    """Rows of 256 positions, micro-batches of 12,500 positions per side."""
    config = BatchingConfig(25_000, "packed", tokens_per_microbatch=12_500)
    plan = plan_epoch(lengths, config, 1, 0)
    assert plan.distinct_shapes == 1
    assert plan.token_ratio >= 0.94
    assert plan.dropped / len(lengths) <= 0.001
