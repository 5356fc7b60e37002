"""Random changes of source sentences: text, ids and batches."""

import numpy as np
import pytest

from t2t_repro.batches import pipeline
from t2t_repro.batches.batching import BatchingConfig
from t2t_repro.data.augmentation import Augmentation
from t2t_repro.data.encoded_pairs import EncodedPairs
from t2t_repro.hparams import HParams
from tests import tiny

TEXT = ">>deu<< one two three?!"


def changed(text, pair=0, epoch=0, **settings):
    return Augmentation(HParams(**settings), None).change_text(text, pair, epoch)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, TEXT),
        ({"augment_upper_case": 1}, ">>deu<< ONE TWO THREE?!"),
        ({"augment_title_case": 1}, ">>deu<< One Two Three?!"),
        ({"augment_no_end_mark": 1}, ">>deu<< one two three"),
        ({"augment_no_end_mark": 1, "augment_title_case": 1}, ">>deu<< One Two Three"),
    ],
)
def test_a_certain_change_gives_the_expected_text(settings, expected):
    assert changed(TEXT, **settings) == expected


def test_each_typo_swaps_omits_or_doubles_a_character():
    results = {changed("abc x", pair, augment_typos=1) for pair in range(200)}
    swapped, omitted, doubled = {"bac", "acb"}, {"bc", "ac"}, {"aabc", "abbc"}
    assert results == {f"{word} x" for word in swapped | omitted | doubled}


def test_probabilities_hold_over_many_pairs_and_epochs():
    hparams = HParams(augment_upper_case=0.2, augment_title_case=0.3)
    change_text = Augmentation(hparams, None).change_text
    for arguments in (
        [(pair, 1) for pair in range(4000)],
        [(1, e) for e in range(4000)],
    ):
        results = [change_text("one", *each) for each in arguments]
        # Within four standard deviations of the expected number.
        assert abs(results.count("ONE") - 800) < 4 * np.sqrt(4000 * 0.2 * 0.8)
        assert abs(results.count("One") - 1200) < 4 * np.sqrt(4000 * 0.3 * 0.7)
        assert results[:9] == [change_text("one", *each) for each in arguments[:9]]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return tiny.tokenizer(tmp_path_factory.mktemp("vocabulary"))


def encode(tokenizer, *texts):
    return tokenizer.encode(list(texts)).to_list()


def test_changed_ids_are_those_of_the_changed_text(tokenizer):
    sentences = encode(tokenizer, "one two", "seven", "two")
    width = max(map(len, sentences))
    inputs = np.zeros((4, width), np.int32)
    for row, ids in enumerate(sentences):
        inputs[row, : len(ids)] = ids
    upper = encode(tokenizer, "ONE TWO", "SEVEN", "TWO")
    assert width < max(map(len, upper)) <= 2 * width
    before = inputs.copy()
    augmentation = Augmentation(HParams(augment_upper_case=1), tokenizer)
    result = augmentation.change(inputs, np.array([5, 3, 9]), 0)
    np.testing.assert_array_equal(inputs, before)
    assert result.shape == (4, 2 * width)
    for row, ids in enumerate([*upper, []]):
        assert result[row].tolist() == ids + [0] * (2 * width - len(ids))
    # With a lower maximum, sentences that are too long stay, and so does the width.
    hparams = HParams(augment_upper_case=1, max_length=width)
    result = Augmentation(hparams, tokenizer).change(inputs, np.array([5, 3, 9]), 0)
    assert result.shape == inputs.shape
    for row, ids in enumerate(upper):
        expected = before[row].tolist()
        if len(ids) <= width:
            expected = ids + [0] * (width - len(ids))
        assert result[row].tolist() == expected


def test_a_resumed_run_reads_the_same_changed_batches(tokenizer):
    texts = tiny.pairs("train")
    pairs = EncodedPairs.from_lists(
        *(encode(tokenizer, *side) for side in zip(*texts, strict=True))
    )
    config = BatchingConfig(300)
    hparams = HParams(augment_upper_case=0.3, augment_typos=0.2)
    change = Augmentation(hparams, tokenizer).change

    def read(start, count, change):
        dataset = pipeline.batches(pairs, config, 1, start, change=change)
        return [
            {name: values.tolist() for name, values in batch.items()}
            for batch in dataset.take(count).as_numpy_iterator()
        ]

    whole, plain = read(0, 20, change), read(0, 20, None)
    assert read(13, 7, change) == whole[13:]
    for batch, unchanged in zip(whole, plain, strict=True):
        assert batch["inputs"] != unchanged["inputs"]
        assert batch["targets"] == unchanged["targets"]
