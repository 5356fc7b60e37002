"""Features of rows that hold several sentence pairs, one after the other."""

from keras import ops

from t2t_repro.layers.functional import Tensor
from t2t_repro.layers.masks import causal_mask, combine_masks, segment_mask

_EOS = 1


def packed_features(inputs: Tensor, targets: Tensor) -> dict[str, Tensor]:
    """Returns the inputs of a `Transformer` for packed rows.

    A segment is one sentence, which ends in EOS. Segment n of a row of `targets` is the
    translation of segment n in the same row of `inputs`.

    Args:
        inputs: int32 (batch, source), 0-padded.
        targets: int32 (batch, target), 0-padded.

    Returns:
        For each side, with the shape of the ids: the ids, the number of the segment,
        counted from 1, as ``..._segmentation``, and the position in the segment,
        counted from 0, as ``..._position``. Both are 0 at padding (tensor2tensor
        generator_utils.py:pack_examples).
    """
    features = {}
    for side, ids in (("inputs", inputs), ("targets", targets)):
        ends = ops.cast(ops.equal(ids, _EOS), "int32")
        tokens = ops.cast(ops.not_equal(ids, 0), "int32")
        segments = (ops.cumsum(ends, axis=1) - ends + 1) * tokens
        # The tokens of a segment up to each one, itself included.
        visible = combine_masks(
            segment_mask(segments, segments), causal_mask(ops.shape(ids)[1])
        )
        count = ops.sum(ops.cast(visible, "int32"), axis=2)
        features[side] = ids
        features[f"{side}_segmentation"] = segments
        features[f"{side}_position"] = (count - 1) * tokens
    return features
