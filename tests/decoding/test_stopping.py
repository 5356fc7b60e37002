"""The length penalty and the two stop rules."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.stopping import (
    SearchStatus,
    batch_done_tensor2tensor,
    length_penalty,
    sentences_done,
)
from tests import golden


def test_penalty_is_one_at_length_one_and_two_at_length_seven() -> None:
    penalty = length_penalty(tf.constant([1, 7]), 1.0)
    np.testing.assert_allclose(penalty, [1.0, 2.0], rtol=1e-6)


def test_penalty_equals_tensor2tensor(shared_dir: Path) -> None:
    arrays = golden.load(shared_dir / "t2t" / "golden" / "misc.npz")
    lengths = tf.constant(arrays["length_penalty/lengths"], tf.int32)
    for name in ("0", "0.6", "1"):
        expected = arrays[f"length_penalty/alpha_{name}"]
        np.testing.assert_allclose(
            length_penalty(lengths, float(name)), expected, rtol=1e-6
        )


# With limit 7 and alpha 1 the penalty is 2, so log probability -2 can reach -1.
@pytest.mark.parametrize(
    ("best_finished", "done"), [(-1.1, False), (-1.0, True), (-0.9, True)]
)
def test_sentence_is_done_when_no_hypothesis_can_score_higher(
    best_finished: float, done: bool
) -> None:
    result = sentences_done(
        SearchStatus(
            tf.constant(3),
            tf.constant([7]),
            log_probs=tf.constant([[-2.0, -3.0]]),
            scores=tf.constant([[best_finished, -9.0]]),
        ),
        penalties=tf.constant([2.0]),
        nbest=1,
    )
    assert bool(result[0]) is done


def test_limit_ends_only_its_own_sentence() -> None:
    result = sentences_done(
        SearchStatus(
            tf.constant(3),
            tf.constant([3, 4]),
            log_probs=tf.constant([[-2.0], [-2.0]]),
            scores=tf.constant([[-9.0], [-9.0]]),
        ),
        penalties=tf.constant([4 / 3, 1.5]),
        nbest=1,
    )
    np.testing.assert_array_equal(result, [True, False])


def test_nbest_is_done_when_its_last_hypothesis_is_final() -> None:
    done = [
        bool(
            sentences_done(
                SearchStatus(
                    tf.constant(3),
                    tf.constant([7]),
                    log_probs=tf.constant([[-2.0, -3.0]]),
                    scores=tf.constant([[-0.5, -1.5]]),
                ),
                penalties=tf.constant([2.0]),
                nbest=nbest,
            )[0]
        )
        for nbest in (1, 2)
    ]
    assert done == [True, False]


def test_tensor2tensor_batch_is_done_with_its_last_sentence() -> None:
    result = batch_done_tensor2tensor(
        SearchStatus(
            tf.constant(3),
            tf.constant([7, 7]),
            log_probs=tf.constant([[-2.0], [-2.0]]),
            scores=tf.constant([[-0.5], [-1.5]]),
        ),
        penalties=tf.constant([2.0, 2.0]),
        nbest=1,
    )
    np.testing.assert_array_equal(result, [False, False])


@pytest.mark.parametrize(("nbest", "expected"), [(1, True), (2, False)])
def test_tensor2tensor_compares_the_worst_score_of_the_batch_for_n_best(
    nbest: int, expected: bool
) -> None:
    result = batch_done_tensor2tensor(
        SearchStatus(
            tf.constant(3),
            tf.constant([7, 7]),
            log_probs=tf.constant([[-2.0, -3.0], [-2.0, -3.0]]),
            scores=tf.constant([[-0.5, -0.6], [-0.5, -9.0]]),
        ),
        penalties=tf.constant([2.0, 2.0]),
        nbest=nbest,
    )
    np.testing.assert_array_equal(result, [expected, expected])
