"""Hypotheses of a search as texts with scores."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.texts.translation import Hypothesis
from t2t_repro.tokenizers.tokenizer import EOS_ID

ReplaceUnknown = Callable[
    [Sequence[str], npt.NDArray[np.integer], Sequence[str]], Sequence[str]
]
"""Replaces unknown tokens; see `UnknownWords`."""


def select_hypotheses(
    search: DecodingConfig, ids: tf.Tensor, scores: tf.Tensor
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Returns the first `nbest` of the results of a search, as arrays."""
    nbest = search.nbest
    return ids[:, :nbest].numpy(), scores[:, :nbest].numpy()


def score_texts(
    search: DecodingConfig,
    ids: npt.NDArray[np.int32],
    scores: npt.NDArray[np.float32],
    texts: Sequence[str],
) -> list[list[Hypothesis]]:
    """Returns the hypotheses of each sentence, without missing ones.

    Args:
        search: Settings of the search.
        ids: int32 (rows, hypotheses, target), 0-padded; only padding if missing.
        scores: float32 (rows, hypotheses).
        texts: Text of each hypothesis, row by row.
    """
    tokens = np.count_nonzero(ids, axis=2)
    log_probs = search.scoring.log_prob(scores, tokens)
    if search.tensor2tensor_rules:
        # The scores of unfinished hypotheses are not divided by the penalty.
        log_probs = np.where((ids == EOS_ID).any(axis=2), log_probs, scores)
    table = np.array(texts, object).reshape(tokens.shape)
    return [
        [
            Hypothesis(text, float(score), int(length), float(log_prob))
            for text, score, length, log_prob in zip(*row, strict=True)
            if length
        ]
        for row in zip(table, scores, tokens, log_probs, strict=True)
    ]
