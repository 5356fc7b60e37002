"""Masks: true where a position may be seen."""

from keras import ops

from t2t_repro.layers.functional import Tensor


def non_padding(ids: Tensor) -> Tensor:
    """Marks the symbols of int32 (batch, length), 0 is PAD: bool (batch, length)."""
    return ops.not_equal(ids, 0)


def padding_mask(ids: Tensor, with_end: bool = True) -> Tensor:
    """Lets every query see the symbols of int32 (batch, source).

    bool (batch, 1, source). Without the end (EOS is 1) that is not seen, unless a
    sentence has nothing else.
    """
    seen = non_padding(ids)
    if not with_end:
        words = ids > 1
        seen = seen & (words | ~ops.any(words, axis=-1, keepdims=True))
    return ops.expand_dims(seen, 1)


def causal_mask(length: Tensor | int) -> Tensor:
    """Lets a position see itself and what comes before it (paper section 3.2.3).

    bool (1, length, length).
    """
    position = ops.arange(length, dtype="int32")
    return position[None, None, :] <= position[None, :, None]
