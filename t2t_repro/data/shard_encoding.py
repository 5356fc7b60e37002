"""Encoding of text pairs on all cores, in order and in bounded memory."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from t2t_repro.system.cores import usable_cores
from t2t_repro.tokenizers.tokenizer import Tokenizer

PAIRS_PER_CALL = 4096
EMPTY_SOURCE, EMPTY_TARGET = "empty source", "empty target"

Encoded = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]


def encode_pairs(
    pairs: Iterable[tuple[str, str]],
    tokenizer: Tokenizer,
    left_out: dict[str, list[int]],
) -> Iterator[Encoded]:
    """Yields encoded chunks in order.

    One thread per core encodes chunks in parallel, because the tokenizer's operations
    release Python's global interpreter lock. Memory holds at most two chunks per core.

    Args:
        pairs: Source and target lines.
        tokenizer: Encodes both sides.
        left_out: Line numbers (from 1) of skipped pairs by reason; updated in place.
    """
    texts = tf.TensorSpec([None], tf.string)

    @tf.function(input_signature=[texts, texts], autograph=False)
    def encode(sources: tf.Tensor, targets: tf.Tensor) -> tf.RaggedTensor:
        sides = [tokenizer.encode(sources), tokenizer.target.encode(targets)]
        # The rows alternate between source and target, the order of the shard files.
        return tf.stack(sides, axis=1).merge_dims(0, 1)

    # Trace in advance, because TensorFlow would count threads that wait for a trace as
    # retracings and log a warning.
    traced = encode.get_concrete_function()
    workers = usable_cores()
    pending: deque[Future[Encoded]] = deque()
    numbered = enumerate(pairs, start=1)
    with ThreadPoolExecutor(workers) as pool:
        while chunk := list(islice(numbered, PAIRS_PER_CALL)):
            nonempty = _drop_empty_pairs(chunk, left_out)
            pending.append(pool.submit(_encode, traced, nonempty))
            if len(pending) >= 2 * workers:
                yield pending.popleft().result()
        for future in pending:
            yield future.result()


def _drop_empty_pairs(
    chunk: list[tuple[int, tuple[str, str]]], left_out: dict[str, list[int]]
) -> list[tuple[str, str]]:
    """Drops pairs with an empty side and records their numbers in `left_out`."""
    pairs = []
    for number, (source, target) in chunk:
        if not source.strip():
            left_out.setdefault(EMPTY_SOURCE, []).append(number)
        elif not target.strip():
            left_out.setdefault(EMPTY_TARGET, []).append(number)
        else:
            pairs.append((source, target))
    return pairs


def _encode(
    encode: Callable[[tf.Tensor, tf.Tensor], tf.RaggedTensor],
    pairs: list[tuple[str, str]],
) -> Encoded:
    """Returns ids int32 (tokens,) and lengths int32 (pairs, 2) of a chunk."""
    if not pairs:
        return np.zeros(0, np.int32), np.zeros((0, 2), np.int32)
    sources, targets = zip(*pairs, strict=True)
    ragged = encode(tf.constant(sources), tf.constant(targets))
    sizes = ragged.row_lengths().numpy().astype(np.int32)
    return ragged.flat_values.numpy(), sizes.reshape(len(pairs), 2)
