"""tf.data pipeline: contents of batches and resuming at a step."""

import itertools
import time

import numpy as np
import pytest

from t2t_repro.batches import pipeline
from t2t_repro.batches.batching import BatchingConfig, plan_epoch
from t2t_repro.batches.packed_batch import SIGNATURE, rectangle
from t2t_repro.data.encoded_pairs import EncodedPairs


@pytest.fixture(scope="module")
def pairs():
    """200 pairs; pair n has source ids n + 2 and target ids n + 300, before EOS."""
    rng = np.random.default_rng(2)
    sizes = rng.integers(1, 30, (200, 2))
    return EncodedPairs.from_lists(
        [[n + 2] * int(s) + [1] for n, (s, _) in enumerate(sizes)],
        [[n + 300] * int(t) + [1] for n, (_, t) in enumerate(sizes)],
    )


def take(dataset, count):
    """Returns the first batches, each a list of (source, target) rows."""
    return [
        [
            row
            for n in range(len(batch["inputs"]))
            for row in zip(
                *(side.numpy().tolist() for side in rectangle(batch, n)), strict=True
            )
        ]
        for batch in dataset.take(count).as_numpy_iterator()
    ]


def take_packed(dataset, count):
    """Returns the first batches as the pipeline packs them."""
    return [
        {name: values.tolist() for name, values in batch.items()}
        for batch in dataset.take(count).as_numpy_iterator()
    ]


@pytest.mark.parametrize("kind", ["sorted", "buckets", "packed"])
@pytest.mark.parametrize("bound", [0, 100])
def test_resumed_run_reads_the_same_batches_as_an_uninterrupted_run(pairs, kind, bound):
    config = BatchingConfig(400, kind, tokens_per_microbatch=bound, packed_length=50)
    per_epoch = plan_epoch(pairs.lengths, config, 9, 0).batches
    whole = take_packed(pipeline.batches(pairs, config, seed=9), 3 * per_epoch)
    for step in (1, per_epoch - 1, per_epoch, 2 * per_epoch + 3):
        dataset = pipeline.batches(pairs, config, seed=9, start_step=step)
        resumed = take_packed(dataset, 4)
        assert resumed == whole[step : step + 4][: len(resumed)]


@pytest.mark.parametrize("bound", [0, 100])
def test_each_epoch_contains_every_pair_once_with_matching_sides(pairs, bound):
    config = BatchingConfig(400, tokens_per_microbatch=bound)
    per_epoch = plan_epoch(pairs.lengths, config, 9, 0).batches
    dataset = pipeline.batches(pairs, config, seed=9)
    elements = take(dataset, 2 * per_epoch)
    for epoch in (elements[:per_epoch], elements[per_epoch:]):
        numbers = []
        for source, target in itertools.chain.from_iterable(epoch):
            if not any(source):
                continue  # A filler row.
            assert target[0] == source[0] + 298
            numbers.append(source[0] - 2)
        assert sorted(numbers) == list(range(200))


def sentences_of(row):
    """Returns the sentences of a packed row, each a list of ids that ends in EOS."""
    ids = np.array(row)
    return np.split(ids[ids > 0], np.flatnonzero(ids[ids > 0] == 1) + 1)[:-1]


def test_packed_batch_contains_the_pairs_of_the_step_with_matching_sides(pairs):
    config = BatchingConfig(400, "packed", tokens_per_microbatch=200, packed_length=50)
    per_epoch = plan_epoch(pairs.lengths, config, 9, 0).batches
    dataset = pipeline.batches(pairs, config, 9, start_step=per_epoch)
    steps = take(dataset, per_epoch)
    found = []
    for step, rows in enumerate(steps):
        assert np.shape(rows) == (8, 2, 50)
        for row in rows:
            sentences = [sentences_of(side) for side in row]
            for source, target in zip(*sentences, strict=True):
                number = source[0] - 2
                assert source.tolist() == [number + 2] * (len(source) - 1) + [1]
                assert target.tolist() == [number + 300] * (len(target) - 1) + [1]
                found.append(number)
        numbers = pipeline.pair_numbers(pairs, config, 9, per_epoch + step)
        assert found[-len(numbers) :] == numbers.tolist()
    assert sorted(found) == list(range(200))


@pytest.mark.parametrize("kind", ["sorted", "packed"])
def test_process_reads_its_own_micro_batches_and_the_global_token_ratio(pairs, kind):
    config = BatchingConfig(400, kind, tokens_per_microbatch=100, packed_length=50)
    whole, own = (
        pipeline.batches(pairs, config, 9, own=own).take(20).as_numpy_iterator()
        for own in (range, lambda count: {1, count - 1})
    )
    for batch, own_batch in zip(whole, own, strict=True):
        count = len(batch["inputs"])
        ids = [np.ravel(side) for n in range(count) for side in rectangle(batch, n)]
        ids = np.concatenate(ids)
        assert batch["token_ratio"] == np.float32(np.count_nonzero(ids)) / np.float32(
            ids.size
        )
        assert own_batch["token_ratio"] == batch["token_ratio"]
        assert count > 2
        for side in ("inputs", "targets"):
            expected = [
                ids if number in (1, count - 1) else b""
                for number, ids in enumerate(batch[side])
            ]
            assert own_batch[side].tolist() == expected


def test_processes_together_evaluate_every_pair_once(pairs):
    config = BatchingConfig(400, tokens_per_microbatch=100)
    firsts = []
    for process in range(3):
        dataset = pipeline.eval_batches(pairs, config, process, 3)
        elements = list(dataset.as_numpy_iterator())
        assert len(elements) == int(dataset.cardinality()) > 1
        firsts += [element["inputs"][:, 0] for element in elements]
    firsts = np.concatenate(firsts)
    assert sorted(firsts[firsts > 0] - 2) == list(range(200))


def test_training_batches_are_packed_and_evaluation_batches_are_matrices(pairs):
    config = BatchingConfig(400, tokens_per_microbatch=100)
    assert pipeline.batches(pairs, config, seed=1).element_spec == SIGNATURE
    spec = pipeline.eval_batches(pairs, config).element_spec
    assert set(spec) == {"inputs", "targets"}
    for side in spec.values():
        assert side.dtype == "int32"
        assert side.shape.as_list() == [None, None]


def test_evaluation_reads_every_pair_once_and_ends(pairs):
    config = BatchingConfig(400, tokens_per_microbatch=100)
    dataset = pipeline.eval_batches(pairs, config)
    elements = list(dataset.as_numpy_iterator())
    assert len(elements) == int(dataset.cardinality())
    firsts = np.concatenate([element["inputs"][:, 0] for element in elements])
    assert sorted(firsts[firsts > 0] - 2) == list(range(200))
    assert max(element["targets"].size for element in elements) <= 100


@pytest.mark.medium
def test_resuming_with_1_5_million_pairs_takes_seconds():
    """A third of WMT14 English-German, and the paper's batches, in mid-epoch.

    Nearly all of the time is spent on planning two epochs.
    """
    rng = np.random.default_rng(1)
    source = np.clip(rng.gamma(2.0, 14.0, 1_500_000), 2, 400)
    target = np.clip(source * rng.uniform(0.7, 1.5, len(source)), 2, 400)
    lengths = np.stack([source, target], axis=1).astype(np.int32)

    class Pairs:
        """Stands in for `EncodedPairs`, whose ids would take a gigabyte."""

        def __init__(self):
            self.lengths = lengths

        def gather(self, indices, shape, rows_of):
            rows, *widths = shape
            sides = [np.zeros([rows, width], np.int32) for width in widths]
            sides[0][: len(indices), 0] = indices
            return dict(zip(("inputs", "targets"), sides, strict=True))

    config = BatchingConfig(25_000, "buckets", tokens_per_microbatch=3571)
    began = time.monotonic()
    step = 30_000
    dataset = pipeline.batches(Pairs(), config, seed=1, start_step=step)
    first = next(iter(dataset.as_numpy_iterator()))
    seconds = time.monotonic() - began
    expected = pipeline.pair_numbers(Pairs(), config, seed=1, step=step)
    rows = [rectangle(first, number)[0] for number in range(len(first["inputs"]))]
    firsts = np.concatenate([inputs[:, 0] for inputs in rows])
    # Ignores rows that begin with 0: filler rows and the row of pair 0.
    assert firsts[firsts > 0].tolist() == expected[expected > 0].tolist()
    assert seconds < 20
