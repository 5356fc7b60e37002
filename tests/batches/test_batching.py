"""Batch plans; expected values computed by hand."""

from dataclasses import replace

import numpy as np
import pytest
import sentencepiece
from golden_checks.t2t_batching import t2t_batching

from t2t_repro.batches.batching import (
    BatchingConfig,
    plan_epoch,
    plan_evaluation,
)
from t2t_repro.system.errors import UserError


def random_lengths(pairs=3000, seed=5, longest=60):
    """Returns correlated source and target lengths, int (pairs, 2)."""
    rng = np.random.default_rng(seed)
    source = np.clip(rng.gamma(4.0, 4.0, pairs), 2, longest)
    target = np.clip(source * rng.uniform(0.7, 1.4, pairs), 2, longest)
    return np.stack([source, target], axis=1).astype(np.int32)


def members(plan):
    """Returns the batches of a plan as a set of frozen sets of pair numbers."""
    return {frozenset(plan.indices(b).tolist()) for b in range(plan.batches)}


def test_each_side_is_padded_to_its_own_maximum():
    lengths = np.array([[2, 5], [3, 4], [9, 1]])
    plan = plan_epoch(lengths, BatchingConfig(tokens_per_batch=10), seed=1, epoch=0)
    # The longer sides are 5, 4 and 9: two pairs fit into 2 x 5, one into 1 x 9.
    assert sorted(map(tuple, plan.shapes.tolist())) == [(1, 9, 1), (2, 3, 5)]
    # 24 tokens over 2 x (3 + 5) + 1 x (9 + 1) = 26 positions.
    assert plan.tokens == 24
    assert plan.positions == 26
    assert plan.token_ratio == pytest.approx(24 / 26)


@pytest.mark.parametrize("kind", ["sorted", "buckets"])
@pytest.mark.parametrize("other", [{"seed": 4, "epoch": 7}, {"seed": 3, "epoch": 8}])
@pytest.mark.parametrize("tokens_per_microbatch", [0, 125])
def test_another_seed_or_epoch_changes_batches_but_not_their_shapes(
    kind, other, tokens_per_microbatch
):
    config = BatchingConfig(500, kind, tokens_per_microbatch=tokens_per_microbatch)
    one = plan_epoch(random_lengths(), config, seed=3, epoch=7)
    two = plan_epoch(random_lengths(), config, **other)
    assert len(members(one) & members(two)) <= 0.1 * one.batches
    assert one.batches == two.batches
    assert one.shapes.tolist() != two.shapes.tolist()
    if kind != "sorted" or tokens_per_microbatch:
        assert sorted(one.shapes.tolist()) == sorted(two.shapes.tolist())


@pytest.mark.parametrize("kind", ["sorted", "buckets"])
def test_pairs_with_one_long_side_are_skipped_and_counted(kind):
    lengths = np.array([[3, 300], [257, 2], [256, 256], [4, 4]])
    plan = plan_epoch(lengths, BatchingConfig(1000, kind), seed=1, epoch=0)
    assert plan.dropped == 2
    assert sorted(plan.order.tolist()) == [2, 3]
    assert "skipped 2 that are too long" in plan.summary()


def test_pair_that_exceeds_the_micro_batch_bound_is_skipped():
    config = BatchingConfig(tokens_per_batch=64, tokens_per_microbatch=8)
    plan = plan_epoch(np.array([[8, 8], [9, 2]]), config, seed=1, epoch=0)
    assert plan.order.tolist() == [0]
    assert plan.shapes.tolist() == [[1, 8, 8]]


def test_bucket_of_ten_pairs_becomes_three_batches_of_equal_shape():
    # Four rows of 5 fit into 20 tokens, so ten pairs need three batches, of 3, 3 and 4
    # pairs. All have four rows.
    plan = plan_epoch(np.full((10, 2), 5), BatchingConfig(20, "buckets"), 1, epoch=0)
    assert plan.shapes.tolist() == [[4, 5, 5]] * 3
    assert sorted(plan.counts.tolist()) == [3, 3, 4]


def test_chosen_buckets_keep_their_limit_and_pad_less_than_tensor2tensor():
    lengths = random_lengths(pairs=20_000)
    plan = plan_epoch(lengths, BatchingConfig(5000, "buckets", max_shapes=24), 1, 0)
    assert plan.distinct_shapes <= 24
    # tensor2tensor's 26 buckets are square: each boundary minus 1, and 60.
    boundaries = t2t_batching(5000, 60).boundaries
    widths = np.append(boundaries - 1, 60)
    padded = 2 * widths[np.searchsorted(widths, lengths.max(axis=1))]
    assert len(widths) == 26
    assert plan.token_ratio > lengths.sum() / padded.sum()


def test_buckets_of_a_single_batch_still_change_every_epoch():
    # With 40 buckets for 2,000 short pairs, each bucket is one batch of at most 25,000
    # tokens.
    lengths = random_lengths(pairs=2000)
    config = BatchingConfig(25_000, "buckets", max_shapes=40, microbatches_per_shape=0)
    one, two = (plan_epoch(lengths, config, 3, epoch) for epoch in (0, 1))
    assert one.batches == 40
    unchanged = [len(batch) for batch in members(one) & members(two)]
    # Only the few pairs of extreme lengths have no second bucket to move to.
    assert sum(unchanged) <= 0.02 * len(lengths)


def test_small_corpus_gets_few_shapes_so_that_its_batches_are_full():
    lengths = random_lengths(pairs=2000)
    batches = int(lengths.max(axis=1).sum()) // 2500
    config = BatchingConfig(2500)
    full = plan_epoch(lengths, replace(config, kind="buckets"), 1, 0)
    many = replace(config, kind="buckets", microbatches_per_shape=0)
    assert full.distinct_shapes <= batches // 2
    assert full.fill_ratio > 0.75 > plan_epoch(lengths, many, 1, 0).fill_ratio


def test_pairs_of_narrower_buckets_replace_filler_rows():
    # A micro-batch of 16 positions has four rows of 4 or two of 8. To mix lengths, one
    # pair of length 4 moves to the bucket of the four pairs of length 8. These five
    # pairs need three micro-batches of two rows, so another pair of length 4 replaces
    # the filler row. The other eight pairs fill two micro-batches of four rows.
    lengths = np.array([[4, 4]] * 10 + [[8, 8]] * 4)
    config = BatchingConfig(
        32, "buckets", tokens_per_microbatch=16, microbatches_per_shape=0
    )
    plan = plan_epoch(lengths, config, seed=1, epoch=0)
    assert sorted(plan.shapes.tolist()) == [[2, 8, 8]] * 3 + [[4, 4, 4]] * 2
    assert plan.token_ratio == pytest.approx(144 / 160)
    wide = [
        {pair for pair in plan_epoch(lengths, config, 1, epoch).order[8:] if pair < 10}
        for epoch in range(20)
    ]
    assert {len(moved) for moved in wide} == {2}
    assert len(set.union(*wide)) > 5  # The moved pairs change with the epoch.


def test_batch_of_several_micro_batches_mixes_short_and_long_pairs():
    lengths = random_lengths(pairs=5000)
    whole, several = (
        plan_epoch(lengths, BatchingConfig(4000, tokens_per_microbatch=size), 1, 0)
        for size in (0, 500)
    )
    means = [
        [lengths[plan.indices(b)].mean() for b in range(plan.batches)]
        for plan in (whole, several)
    ]
    # A batch of about ten micro-batches contains pairs of all lengths.
    assert np.std(means[1]) < 0.5 * np.std(means[0])
    assert several.fill_ratio > 0.9
    words = f"{several.batches} batches ({several.microbatches} micro-batches)"
    assert words in several.summary()


def test_evaluation_contains_all_pairs_from_short_to_long():
    lengths = np.array([[4, 300], [2, 3], [5, 5], [3, 2]])
    plan = plan_evaluation(lengths, BatchingConfig(tokens_per_batch=10))
    # The batches are 2 x 3, 1 x 5 and 1 x 300: together, the three shortest pairs would
    # need 3 x 5 = 15 positions, more than 10.
    assert [plan.indices(b).tolist() for b in range(3)] == [[1, 3], [2], [0]]
    assert plan.shapes.tolist() == [[2, 3, 3], [1, 5, 5], [1, 4, 300]]
    assert plan.dropped == 0


def test_rejects_a_corpus_without_short_pairs():
    with pytest.raises(UserError, match="has a side of more than 256 tokens"):
        plan_epoch(np.array([[300, 3]]), BatchingConfig(1000), seed=1, epoch=0)


def test_multi30k_has_little_padding_at_the_batch_size_of_the_paper(shared_dir):
    tokenizer = sentencepiece.SentencePieceProcessor(
        model_file=str(shared_dir / "t2t" / "multi30k_reference" / "spm6k.model")
    )
    corpus = shared_dir / "corpora" / "multi30k"
    sides = [
        [len(ids) + 1 for ids in tokenizer.encode(text.split("\n")[:-1])]
        for text in (
            (corpus / f"train.{lang}").read_text(encoding="utf-8")
            for lang in ("en", "de")
        )
    ]
    lengths = np.array(sides).T
    config = BatchingConfig(25_000, "buckets", tokens_per_microbatch=3571)
    static = plan_epoch(lengths, config, 1, 0)
    assert static.distinct_shapes <= 48
    assert static.token_ratio >= 0.93
    free = plan_epoch(lengths, replace(config, kind="sorted"), 1, 0)
    assert free.token_ratio >= 0.96
    assert static.dropped == free.dropped == 0
    assert min(static.fill_ratio, free.fill_ratio) > 0.9
    packed = plan_epoch(lengths, replace(config, kind="packed"), 1, 0)
    assert packed.distinct_shapes == 1
    assert packed.token_ratio >= 0.94


def test_evaluation_skips_pairs_above_a_given_length():
    lengths = np.array([[4, 300], [2, 3], [400_000, 5], [3, 300]])
    plan = plan_evaluation(lengths, BatchingConfig(tokens_per_batch=10), longest=300)
    assert sorted(plan.order.tolist()) == [0, 1, 3]
    assert (plan.dropped, plan.tokens) == (1, 304 + 5 + 303)
