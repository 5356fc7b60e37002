"""Copies of weights for parallel searches."""

import threading

import tensorflow as tf

from t2t_repro.fast.cached_decoder import KVCacheDecoder, list_members
from t2t_repro.fast.small_batch_matmul import needs_copies
from t2t_repro.models.ensemble import ModelDecoder
from t2t_repro.models.generate import combine_decoders

Copies = list[list[tf.Tensor]]
"""Copies of the weights of each member of an ensemble."""


class SharedCopies:
    """Copies of weights that parallel searches share while the weights do not change.

    Without sharing, every search makes its own copies (see `KVCacheDecoder.prepack`).

    Args:
        decoder: Decoder of the searches.
        most: Largest number of sentences of a search. If it is small enough, the
            searches only divide the weights in halves, and it takes less time to trace
            and optimize their graph.
    """

    def __init__(self, decoder: ModelDecoder, most: int) -> None:
        self._decoder = decoder
        self._few = not needs_copies(most * decoder.beam_size)
        self._lock = threading.Lock()
        self._copies: dict[bool, Copies] = {}

    def copy_weights(self, sentences: int) -> Copies:
        """Returns the copies for a search of some sentences, made at the first call."""
        many = needs_copies(sentences * self._decoder.beam_size)
        with self._lock:
            if many not in self._copies:
                self._copies[many] = [
                    each.copies(sentences)
                    if isinstance(each, KVCacheDecoder) and not self._few
                    else []
                    for each in list_members(self._decoder)
                ]
            return self._copies[many]


def use_copies(decoder: ModelDecoder, copies: Copies) -> ModelDecoder:
    """Returns a decoder that uses the results of `SharedCopies.copy_weights`."""
    return combine_decoders(
        [
            each.use_copies(own) if isinstance(each, KVCacheDecoder) else each
            for each, own in zip(list_members(decoder), copies, strict=True)
        ]
    )
