"""State of a beam search in ``keras.ops``, and the functions that update it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
from keras import ops

from t2t_repro.layers.functional import Tensor

NEVER = float("-inf")
"""Log probability of forbidden tokens and missing hypotheses."""

NextLogits = Callable[[Tensor, Any, Tensor], tuple[Tensor, Tensor, Any]]
"""Function from tokens, int32 (batch * num_beams, width), a cache and the index of the
next token to its logits, float (batch * num_beams, V), hidden states and a cache."""


class Sentences(NamedTuple):
    """Constants of a search; the fields are arguments of the sampler."""

    prompt: Tensor
    mask: Tensor
    limits: Tensor
    stops: Tensor
    select: Callable[[Any, Tensor], Any]


class Beams(NamedTuple):
    """State of a search.

    Attributes:
        index: int32 (), the position of the next token.
        tokens: int32 (batch, num_beams + 1, width), the unfinished hypotheses and the
            best finished one.
        log_probs: float32 (batch, num_beams), of the unfinished hypotheses, best first;
            all -inf once the sentence is done, so that nothing changes any more.
        scores: float32 (batch, num_beams), of the best finished hypotheses.
        cache: Cache of all hypotheses.
    """

    index: Tensor
    tokens: Tensor
    log_probs: Tensor
    scores: Tensor
    cache: Any


def select_rows(cache: Any, parents: Tensor) -> Any:
    """Reorders a nested structure of tensors (batch * num_beams, ...)."""
    batch, count = parents.shape
    rows = parents + ops.arange(batch, dtype="int32")[:, None] * count
    rows = ops.reshape(rows, (batch * count,))
    return keras.tree.map_structure(lambda each: ops.take(each, rows, axis=0), cache)


def take(values: Tensor, columns: Tensor) -> Tensor:
    """Takes columns of each row: (batch, n) and int32 (batch, k) -> (batch, k)."""
    return ops.take_along_axis(values, columns, axis=1)


def append(beams: Beams, sources: Tensor, ids: Tensor) -> Tensor:
    """Adds a token to copies of hypotheses.

    Args:
        beams: State of the search.
        sources: int32 (batch, num_beams + 1), the hypotheses to copy.
        ids: int32 (batch, num_beams + 1), the tokens to add.

    Returns:
        int32 (batch, num_beams + 1, width).
    """
    tokens = ops.take_along_axis(beams.tokens, sources[:, :, None], axis=1)
    is_added = ops.arange(tokens.shape[2]) == beams.index
    return ops.where(is_added, ids[:, :, None], tokens)
