"""Attention masks: true at visible positions."""

from keras import ops

from t2t_repro.layers.functional import Tensor


def non_padding(ids: Tensor) -> Tensor:
    """Marks the tokens other than PAD (0): int32 to bool (batch, length)."""
    return ops.not_equal(ids, 0)


def padding_mask(ids: Tensor, with_end: bool = True) -> Tensor:
    """Returns the mask that hides the padding of the source.

    Args:
        ids: int32 (batch, source), 0-padded.
        with_end: Whether EOS (1) is visible; it always is in a sentence without other
            tokens.

    Returns:
        bool (batch, 1, source).
    """
    visible = non_padding(ids)
    if not with_end:
        words = ids > 1
        visible = visible & (words | ~ops.any(words, axis=-1, keepdims=True))
    return ops.expand_dims(visible, 1)


def causal_mask(length: Tensor | int) -> Tensor:
    """Returns the mask that hides later positions (paper section 3.2.3).

    Returns:
        bool (1, length, length).
    """
    position = ops.arange(length, dtype="int32")
    return position[None, None, :] <= position[None, :, None]


def segment_mask(queries: Tensor | None, keys: Tensor | None) -> Tensor | None:
    """Returns the mask that keeps several sentence pairs in one row apart.

    Args:
        queries: int32 (batch, targets), number of the segment at each position, from 1;
            0 at padding. None, on both sides: every row is one segment.
        keys: int32 (batch, sources), likewise.

    Returns:
        bool (batch, targets, sources), true within a segment; None without segments.

    References:
        tensor2tensor common_attention.py:attention_bias_same_segment.
    """
    if queries is None or keys is None:
        return None
    return ops.equal(ops.expand_dims(queries, 2), ops.expand_dims(keys, 1))


def combine_masks(mask: Tensor | None, other: Tensor) -> Tensor:
    """Combines two masks: true where both are true; None is true everywhere."""
    return other if mask is None else ops.logical_and(mask, other)
