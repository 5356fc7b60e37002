"""Base class of the tokenizers, and operations on their ragged ids."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import sys
from abc import abstractmethod
from collections.abc import Callable, Sequence

import tensorflow as tf

from t2t_repro.system.atomic_file import write_bytes_atomically
from t2t_repro.tokenizers import plain_tokenizer

PAD_ID = plain_tokenizer.PAD_ID
EOS_ID = plain_tokenizer.EOS_ID
SENTENCEPIECE_SUFFIX = ".model"
WORD_PIECE_SUFFIX = ".subwords"
MARIAN_SUFFIX = ".marian"
SEPARATE_SUFFIX = ".sides"
LABEL = r">>[^<>\s]+<<"
"""Label that selects the target language of a multilingual model: `>>deu<<`."""


class Tokenizer(tf.Module):
    """Base class: converts text to ids and back with TensorFlow operations only.

    A SavedModel that contains a tokenizer accepts and returns strings; to load it, the
    operations of `tensorflow_text` must be registered. In every vocabulary id 0 is
    padding and id 1 is EOS.

    Args:
        contents: Bytes of the vocabulary file.
        file_name: Name of the vocabulary file, without the directory.
        vocab_size: Number of ids.

    Attributes:
        fingerprint: SHA-256 of the vocabulary file, in hexadecimal.
        unknown_id: Id of text that the vocabulary cannot spell; None: it can spell
            every text.
        has_labels: Whether a text may begin with a `LABEL`.
    """

    def __init__(self, contents: bytes, file_name: str, vocab_size: int) -> None:
        """Stores the contents of the vocabulary file for `save`."""
        super().__init__()
        self.file_name = file_name
        self.vocab_size = vocab_size
        self.fingerprint = hashlib.sha256(contents).hexdigest()
        self.unknown_id: int | None = None
        self.has_labels = False
        self._contents = contents
        self._printed: tuple[str, ...] = ()  # Notes.

    @property
    def contents(self) -> bytes:
        """Contents of the vocabulary file."""
        return self._contents

    @property
    def source(self) -> Tokenizer:
        """Tokenizer of source text, with the vocabulary of that side only."""
        return self

    @property
    def target(self) -> Tokenizer:
        """Tokenizer of target text: this object, unless the two sides differ."""
        return self

    @property
    def target_vocab_size(self) -> int | None:
        """Size of the target vocabulary; None: both sides share a vocabulary."""
        return None

    @property
    def make_plain(self) -> Callable[[], plain_tokenizer.PlainTokenizer]:
        """Function that creates this tokenizer without TensorFlow; can be pickled."""
        suffix = os.path.splitext(self.file_name)[1]
        return functools.partial(plain_tokenizer.parse, self._contents, suffix)

    @functools.cached_property
    def plain(self) -> plain_tokenizer.PlainTokenizer:
        """This tokenizer without TensorFlow, for texts outside of a graph.

        Graphs take a second to trace. While searches use all cores, their operations
        take longer than plain Python.
        """
        return self.make_plain()

    @property
    @abstractmethod
    def pieces(self) -> list[str]:
        """The piece of each id, as spelled in the vocabulary file.

        A piece contains markup: SentencePiece marks the beginning of a word with
        U+2581, tensor2tensor marks the end of a word with `_`. tensor2tensor's files
        may contain a piece twice; encoding then uses the higher id.
        """

    def encode(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Encodes texts and appends EOS to each row.

        Special pieces (`</s>`, `<pad>`) in a text are encoded as plain text.

        Args:
            text: string `(batch,)`, UTF-8; invalid bytes are replaced by U+FFFD.

        Returns:
            Ids, int32 `(batch, None)`, ragged.
        """
        encode = self._encode_graph.get_concrete_function()
        pieces = encode(tf.convert_to_tensor(text, tf.string))
        end = tf.fill([pieces.nrows(), 1], tf.constant(EOS_ID, tf.int32))
        return tf.concat([pieces, tf.RaggedTensor.from_tensor(end)], axis=1)

    def encode_terms(self, terms: tf.Tensor) -> tf.RaggedTensor:
        """Encodes terms as whole words of a longer text, without EOS.

        Args:
            terms: string `(terms,)`, UTF-8.

        Returns:
            Ids, int32 `(terms, None)`, ragged. They contain `unknown_id` if the
            vocabulary cannot spell the term.
        """
        return self.encode(terms)[:, :-1]

    @property
    def labels(self) -> tuple[str, ...]:
        """Language labels in the vocabulary; empty unless the model needs them."""
        return ()

    def notes(self, texts: Sequence[str]) -> list[str]:
        """Returns a line for each problem of the markup in source texts."""
        return []

    def print_notes(self, texts: Sequence[str]) -> None:
        """Prints the notes about source texts to standard error, each only once."""
        for note in self.notes(texts):
            if note not in self._printed:
                print(note, file=sys.stderr, flush=True)
                self._printed = (*self._printed, note)

    def decode(self, ids: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        """Decodes each row of ids up to its first EOS.

        Args:
            ids: int32 `(batch, length)`, dense or ragged. Padding and ids outside of
                the vocabulary are ignored.

        Returns:
            Texts, string `(batch,)`, always valid UTF-8.
        """
        if not isinstance(ids, tf.RaggedTensor):
            ids = tf.RaggedTensor.from_tensor(ids)
        decode = self._decode_graph.get_concrete_function()
        return decode(tf.cast(ids.with_row_splits_dtype("int64"), tf.int32))

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Writes the vocabulary file into a directory, atomically."""
        path = os.path.join(os.fspath(directory), self.file_name)
        write_bytes_atomically(path, self._contents)

    def save_for_clients(self, directory: str | os.PathLike[str]) -> None:
        """Writes the vocabulary file and `plain_tokenizer.py`, which can read it."""
        self.save(directory)
        shutil.copy(plain_tokenizer.__file__, directory)

    # Eager calls also use graphs: one call replaces dozens. Callers use the concrete
    # function, because TensorFlow counts the calls of a `tf.function` for all
    # tokenizers together and would log a warning about retracing.
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def _encode_graph(self, text: tf.Tensor) -> tf.RaggedTensor:
        with tf.device("CPU"):  # TensorFlow keeps strings in CPU memory
            return self._to_pieces(text)

    @tf.function(
        input_signature=[tf.RaggedTensorSpec([None, None], tf.int32, 1, tf.int64)],
        autograph=False,
    )
    def _decode_graph(self, ids: tf.RaggedTensor) -> tf.Tensor:
        with tf.device("CPU"):
            return self._to_text(_cut_at_eos(ids, self.vocab_size))

    @abstractmethod
    def _to_pieces(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Encodes string `(batch,)` as int32 `(batch, None)`, without EOS."""

    @abstractmethod
    def _to_text(self, pieces: tf.RaggedTensor) -> tf.Tensor:
        """Decodes int32 `(batch, None)`, 0 < id < vocab_size, to string `(batch,)`."""


def cut_rows(ids: tf.RaggedTensor, longest: int) -> tf.RaggedTensor:
    """Truncates encoded rows, which end in EOS, to at most `longest` ids with EOS."""
    end = tf.fill([ids.nrows(), 1], EOS_ID)
    return tf.concat([ids[:, :-1][:, : longest - 1], end], axis=1)


def row_numbers(ragged: tf.RaggedTensor) -> tf.Tensor:
    """Returns the row of each value, int64 `(values,)`, like `value_rowids`.

    `value_rowids`, `tf.ragged.boolean_mask` and `tf.strings.reduce_join` create a
    padded tensor (rows x longest row), which takes gigabytes if a large batch contains
    a text of 20,000 characters.
    """
    positions = tf.range(tf.size(ragged.values, tf.int64))
    return tf.searchsorted(ragged.row_splits[1:], positions, "right", tf.int64)


def _cut_at_eos(ids: tf.RaggedTensor, vocab_size: int) -> tf.RaggedTensor:
    """Removes ids after a row's first EOS, padding, and ids not in the vocabulary."""
    values = ids.values
    # Count EOS over the whole batch; subtract the count before the row.
    ends = tf.cumsum(tf.cast(tf.equal(values, EOS_ID), tf.int32))
    before_rows = tf.gather(tf.concat([[0], ends], 0), ids.row_starts())
    rows = row_numbers(ids)
    before_eos = tf.equal(ends, tf.gather(before_rows, rows))
    is_text = before_eos & (values > PAD_ID) & (values < vocab_size)
    return tf.RaggedTensor.from_value_rowids(
        tf.boolean_mask(values, is_text),
        tf.boolean_mask(rows, is_text),
        nrows=ids.nrows(),
        validate=False,
    )
