"""Tests of parallel searches, which share copies of weights."""

import os

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.fast.searchers import ParallelSearcher
from t2t_repro.fast.shared_copies import SharedCopies
from t2t_repro.models.searcher import EncodedBatch
from tests import tiny


@pytest.fixture(scope="module")
def model():
    return tiny.random_model()


@pytest.fixture(scope="module")
def searcher(model, tokenizer):
    config = DecodingConfig(beam_size=3, extra_length=3)
    return ParallelSearcher([model], tokenizer, config)


@pytest.mark.medium
@pytest.mark.usefixtures("fast_implementations")
def test_searches_with_shared_copies_find_the_same_translations(model, tokenizer):
    config = DecodingConfig(beam_size=3, extra_length=3)
    searcher = ParallelSearcher([model], tokenizer, config)
    inputs = tokenizer.encode(tf.constant(["one two", "ten"] * 8)).to_tensor()
    for scale in (1.0, -1.0):
        for variable in model.trainable_variables:
            variable.assign(variable * scale)
        any_rows, few_rows = (SharedCopies(searcher.decoder, n) for n in (16, 1))
        # 3 and 48 rows: the former need no copies, and later the same copies are used.
        for rows, copies in (
            (inputs[:1], few_rows),
            (inputs[:1], any_rows),
            (inputs, any_rows),
            (inputs[::-1], any_rows),
        ):
            expected = searcher.search(rows)
            shared = searcher.search_batch(copies, EncodedBatch(rows))
            np.testing.assert_array_equal(shared[0], expected[0])
            np.testing.assert_allclose(shared[1], expected[1], rtol=1e-6)


def test_a_search_is_called_once_without_rows(searcher):
    """The first call optimizes its graph."""
    calls = []

    def search(*arguments):
        calls.append([tuple(each.shape) for each in arguments])

    for rows in (4, 2):
        copies = [[tf.ones([2, 2])], []]
        searcher._optimize(search, [tf.ones([rows, 3]), tf.ones([rows, 5, 1])], copies)
    assert calls == [[(0, 3), (0, 5, 1), (2, 2)]]


@pytest.mark.parametrize(
    ("sentences", "most", "cores", "expected"),
    [(64, 32, 2, 32), (33, 32, 2, 17), (3, 32, 2, 2), (1, 32, 2, 1), (9, 4, 1, 4)],
)
def test_few_sentences_occupy_all_cores(
    searcher, sentences, most, cores, expected, monkeypatch
):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(cores))
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
    assert searcher.batch_size([1] * sentences, most, False) == expected
