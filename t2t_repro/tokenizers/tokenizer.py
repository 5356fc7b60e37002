"""What every tokenizer of this project does."""

from __future__ import annotations

import hashlib
import os
from abc import abstractmethod

import tensorflow as tf

from t2t_repro.system.atomic_file import write_bytes_atomically

PAD_ID = 0
EOS_ID = 1
SENTENCEPIECE_SUFFIX = ".model"
WORD_PIECE_SUFFIX = ".subwords"
MARIAN_SUFFIX = ".marian"


class Tokenizer(tf.Module):
    """Text to ids and back, as TensorFlow operations only.

    A SavedModel that holds one takes and gives raw strings; it needs the operations of
    `tensorflow_text`. In every vocabulary id 0 is padding and 1 ends a sentence.

    Args:
        contents: the bytes of the vocabulary file.
        file_name: its name, without the directory.
        vocab_size: how many ids there are.

    Attributes:
        fingerprint: SHA-256 of the vocabulary file, in hexadecimal.
        unknown_id: what stands for text that no piece spells; None: there is none.
    """

    def __init__(self, contents: bytes, file_name: str, vocab_size: int) -> None:
        """Keeps the vocabulary file for `save`."""
        super().__init__()
        self.file_name = file_name
        self.vocab_size = vocab_size
        self.fingerprint = hashlib.sha256(contents).hexdigest()
        self.unknown_id: int | None = None
        self._contents = contents

    @property
    def target(self) -> Tokenizer:
        """What encodes and decodes target text: itself, unless the sides differ."""
        return self

    @property
    def target_vocab_size(self) -> int | None:
        """Ids of the target's own vocabulary; None: both sides share one."""
        return None

    @property
    @abstractmethod
    def pieces(self) -> list[str]:
        """The name of every id, as the vocabulary file spells it.

        A name is not what the piece adds to a text: SentencePiece marks the beginning
        of a word with U+2581, tensor2tensor the end of one with `_`. tensor2tensor's
        files may hold a name twice; then the later id is the one in use.
        """

    def encode(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Returns the ids of each text, EOS at the end of every row.

        What looks like a special symbol (`</s>`, `<pad>`) is plain text.

        Args:
            text: string `(batch,)`, UTF-8; invalid bytes are read as U+FFFD.

        Returns:
            int32 `(batch, None)`, ragged.
        """
        pieces = self._encode_graph(tf.convert_to_tensor(text, tf.string))
        end = tf.fill([pieces.nrows(), 1], tf.constant(EOS_ID, tf.int32))
        return tf.concat([pieces, tf.RaggedTensor.from_tensor(end)], axis=1)

    def decode(self, ids: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        """Returns the text of each row of ids up to its first EOS.

        Args:
            ids: int32 `(batch, length)`, dense or ragged. Padding, and ids outside the
                vocabulary, are left out.

        Returns:
            string `(batch,)`, always valid UTF-8.
        """
        if not isinstance(ids, tf.RaggedTensor):
            ids = tf.RaggedTensor.from_tensor(ids)
        return self._decode_graph(tf.cast(ids.with_row_splits_dtype("int64"), tf.int32))

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Writes the vocabulary file into a directory, whole or not at all."""
        path = os.path.join(os.fspath(directory), self.file_name)
        write_bytes_atomically(path, self._contents)

    # Graphs also when called eagerly: one call instead of dozens, and keras-nlp gives
    # tensors (not Python lists) only inside a graph.
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def _encode_graph(self, text: tf.Tensor) -> tf.RaggedTensor:
        with tf.device("CPU"):  # strings live there; ids would only go to and fro
            return self._to_pieces(text)

    @tf.function(
        input_signature=[tf.RaggedTensorSpec([None, None], tf.int32, 1, tf.int64)],
        autograph=False,
    )
    def _decode_graph(self, ids: tf.RaggedTensor) -> tf.Tensor:
        with tf.device("CPU"):
            return self._to_text(_up_to_eos(ids, self.vocab_size))

    @abstractmethod
    def _to_pieces(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Returns int32 `(batch, None)`, without EOS, of string `(batch,)`."""

    @abstractmethod
    def _to_text(self, pieces: tf.RaggedTensor) -> tf.Tensor:
        """Returns string `(batch,)` of int32 `(batch, None)`, 0 < id < vocab_size."""


def cut_rows(ids: tf.RaggedTensor, longest: int) -> tf.RaggedTensor:
    """Cuts rows as `Tokenizer.encode` returns them to `longest` ids, EOS included."""
    end = tf.fill([ids.nrows(), 1], EOS_ID)
    return tf.concat([ids[:, :-1][:, : longest - 1], end], axis=1)


def row_numbers(ragged: tf.RaggedTensor) -> tf.Tensor:
    """Returns the row of each value, int64 `(values,)`, as `value_rowids` does.

    TensorFlow's own goes through a padded tensor (rows x longest row), as do
    `tf.ragged.boolean_mask` and `tf.strings.reduce_join`: with one text of 20,000
    characters in a large batch that takes gigabytes.
    """
    places = tf.range(tf.size(ragged.values, tf.int64))
    return tf.searchsorted(ragged.row_splits[1:], places, "right", tf.int64)


def _up_to_eos(ids: tf.RaggedTensor, vocab_size: int) -> tf.RaggedTensor:
    """Keeps what stands before each row's first EOS and is in the vocabulary."""
    values = ids.values
    # Ends seen so far in the whole batch; a row's own ones are those since its start.
    ends = tf.cumsum(tf.cast(tf.equal(values, EOS_ID), tf.int32))
    before_rows = tf.gather(tf.concat([[0], ends], 0), ids.row_starts())
    rows = row_numbers(ids)
    open_ = tf.equal(ends, tf.gather(before_rows, rows))
    kept = open_ & (values > PAD_ID) & (values < vocab_size)
    return tf.RaggedTensor.from_value_rowids(
        tf.boolean_mask(values, kept),
        tf.boolean_mask(rows, kept),
        nrows=ids.nrows(),
        validate=False,
    )
