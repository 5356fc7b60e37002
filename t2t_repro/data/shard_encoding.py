"""Encoding of text pairs on all cores, in order, in bounded memory, by their words.

Few words make up most of a text, so their ids are kept. SentencePiece's library takes
several times as long for the same ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from t2t_repro.system.pool import map_in_order
from t2t_repro.tokenizers.plain_tokenizer import (
    EOS_ID,
    PlainTokenizer,
    SentencePieces,
    Side,
)

PAIRS_PER_CALL = 4096
# Chunks that are encoded before other processes start, which takes about a second.
_CHUNKS_ALONE = 16
# Bounds of the memory for the words of a side: at most about 60 MB.
_MOST_WORDS, _LONGEST_WORD = 1 << 18, 64
_SPACE = "\u2581"  # A space in SentencePiece's models.
# Results of the normalization rules of `vocabulary.build_vocabulary`, which replace
# one character each.
_LOSSLESS_RULES = "\ue000\ue001\0\ue000\ue002\0".encode()


class Chunk(NamedTuple):
    """Sentence pairs of one shard."""

    shard: int
    pairs: list[tuple[str, str]]


class EncodedChunk(NamedTuple):
    """Encoded pairs of one shard.

    Attributes:
        shard: Number of the shard.
        tokens: Ids (tokens,): each pair as source and target, both ending in EOS.
        lengths: int32 (pairs, 2), source and target tokens, EOS included.
    """

    shard: int
    tokens: npt.NDArray[np.integer]
    lengths: npt.NDArray[np.int32]


def encode_chunks(
    chunks: Iterable[Chunk],
    make_tokenizer: Callable[[], PlainTokenizer],
    dtype: npt.DTypeLike,
    workers: int = 1,
) -> Iterator[EncodedChunk]:
    """Yields encoded chunks in order.

    Args:
        chunks: Chunks of pairs.
        make_tokenizer: Returns the tokenizer; called once in each process. It is
            pickled if there are several.
        dtype: Integer type of the ids.
        workers: Number of processes that encode a large corpus; 1: only this one.
    """
    make, chunks = partial(_PairEncoder, make_tokenizer, dtype), iter(chunks)
    yield from map(make(), islice(chunks, _CHUNKS_ALONE if workers > 1 else None))
    yield from map_in_order(make, chunks, workers)


class _PairEncoder:
    """Encodes chunks of pairs in one process."""

    def __init__(
        self, make_tokenizer: Callable[[], PlainTokenizer], dtype: npt.DTypeLike
    ) -> None:
        tokenizer = make_tokenizer()
        self._dtype: np.dtype[Any] = np.dtype(dtype)
        self._source = self._target = _Words(tokenizer.source, self._dtype)
        if tokenizer.target is not tokenizer.source:
            self._target = _Words(tokenizer.target, self._dtype)

    def __call__(self, chunk: Chunk) -> EncodedChunk:
        rows = [
            row
            for source, target in chunk.pairs
            for row in (self._source.encode(source), self._target.encode(target))
        ]
        lengths = np.fromiter(map(len, rows), np.int32) // self._dtype.itemsize
        tokens = np.frombuffer(b"".join(rows), self._dtype)
        return EncodedChunk(chunk.shard, tokens, lengths.reshape(-1, 2))


class _Words(dict[str, bytes]):
    """Ids of words of one side; a missing word is encoded and kept."""

    def __init__(self, side: Side, dtype: np.dtype[Any]) -> None:
        super().__init__()
        self._side, self._dtype = side, dtype
        self._split = side.split
        self._end = np.array(EOS_ID, dtype).tobytes()
        if isinstance(side, SentencePieces) and _divides_at_spaces(side.contents):
            self._split = _split_at_spaces
            # The model encodes nothing for an empty word, between two spaces.
            spaces = side.encode(" ")
            self[""] = np.array(spaces[: len(spaces) // 2], dtype).tobytes()

    def __missing__(self, word: str) -> bytes:
        ids = np.array(self._side.encode(word), self._dtype).tobytes()
        if len(self) < _MOST_WORDS and len(word) <= _LONGEST_WORD:
            self[word] = ids
        return ids

    def encode(self, text: str) -> bytes:
        """Returns the ids of a text, ending in EOS."""
        return b"".join(map(self.__getitem__, self._split(text))) + self._end


def _split_at_spaces(text: str) -> list[str]:
    return text.split(" ")


def _divides_at_spaces(model: bytes) -> bool:
    """Returns whether a SentencePiece model encodes each word by itself.

    Byte-pair encoding does if no piece continues after a space and if normalization
    leaves spaces as they are. The best segmentation of a unigram model may depend on
    the rounding of its sum over all words.
    """
    from sentencepiece import sentencepiece_model_pb2

    # The module creates the class at import, where type checkers cannot see it.
    message: Any = sentencepiece_model_pb2
    proto = message.ModelProto.FromString(model)
    rules, trainer = proto.normalizer_spec, proto.trainer_spec
    # Compiled rules: the size of a trie of what they replace, the trie, the results.
    compiled = rules.precompiled_charsmap
    results = compiled[4 + int.from_bytes(compiled[:4], "little") :]
    return bool(
        trainer.model_type == trainer.BPE
        and not trainer.treat_whitespace_as_suffix
        and rules.add_dummy_prefix
        and rules.escape_whitespaces
        and not rules.remove_extra_whitespaces
        and results in (b"", _LOSSLESS_RULES)
        and not any(_SPACE in piece.piece[1:] for piece in proto.pieces)
    )
