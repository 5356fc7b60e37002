"""SentencePiece byte-pair encoding in the graph, the paper's English-German scheme."""

from __future__ import annotations

import os
from typing import Any

import tensorflow as tf

from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.tokenizer import EOS_ID, PAD_ID, Tokenizer

# The byte "A", used as a mark that decoding puts before a row and takes off again.
_MARK_PIECE, _MARK = "<0x41>", "A"


class SentencePieceTokenizer(Tokenizer):
    """A SentencePiece model as a tokenizer, through keras-nlp (paper section 5.1).

    The ids are those of the sentencepiece library. A text comes back as it was from
    the models of `build_vocabulary`, not from one with SentencePiece's default
    normalisation.

    Args:
        contents: the bytes of the model file.
        path: where they come from; its base name becomes `file_name`.

    Raises:
        UserError: the model is damaged, or its pad id is not 0 or its eos id not 1.
    """

    def __init__(self, contents: bytes, path: str | os.PathLike[str]) -> None:
        """Reads the model, and the library that runs it in the graph."""
        path = os.fspath(path)
        complaint = "not a SentencePiece model, or a damaged one; build it again"
        processor, proto = read_model(contents, f"{path}: {complaint}")
        # A special symbol that a text could write has -1 here, so it is refused, too.
        pad_id, eos_id = processor.pad_id(), processor.eos_id()
        if (pad_id, eos_id) != (PAD_ID, EOS_ID):
            raise UserError(
                f"{path}: the model has pad id {pad_id} and eos id {eos_id}; train "
                f"it with --pad_id={PAD_ID} --eos_id={EOS_ID} (and --unk_id=2)"
            )
        super().__init__(contents, os.path.basename(path), processor.vocab_size())
        self.unknown_id = processor.unk_id()

        import keras_nlp  # 3 seconds, paid only by those who use it

        self._tokenizer = keras_nlp.tokenizers.SentencePieceTokenizer(
            proto=contents, dtype="int32"
        )
        in_graph = self._tokenizer._sentence_piece
        in_graph._model_resource = SharedModel(contents, self.fingerprint)
        # Decoding in tensorflow_text drops all leading spaces, the library just the
        # one that encoding has added. A mark in front makes both the same.
        mark = processor.piece_to_id(_MARK_PIECE)
        settings = proto.normalizer_spec
        adds_space = settings.add_dummy_prefix and not settings.remove_extra_whitespaces
        self._mark_id = mark if processor.is_byte(mark) and adds_space else None

    @property
    def pieces(self) -> list[str]:
        """The piece of each id, as in the model file."""
        return [piece.piece for piece in model_proto(self._contents).pieces]

    def _to_pieces(self, text: tf.Tensor) -> tf.RaggedTensor:
        return self._tokenizer.tokenize(text)

    def _to_text(self, pieces: tf.RaggedTensor) -> tf.Tensor:
        if self._mark_id is None:
            return self._tokenizer.detokenize(pieces)
        mark = tf.fill([pieces.nrows(), 1], tf.constant(self._mark_id, tf.int32))
        marked = tf.concat([tf.RaggedTensor.from_tensor(mark), pieces], axis=1)
        text = self._tokenizer.detokenize(marked)
        return tf.strings.regex_replace(text, f"^{_MARK} ?", "", replace_global=False)


class SharedModel(tf.saved_model.experimental.TrackableResource):
    """A model that TensorFlow holds by name, one for all tokenizers that are alike.

    That of tensorflow_text belongs to a kernel, and `keras.utils.set_random_seed`
    empties the cache of kernels: a tokenizer made before it could not be used after.
    """

    def __init__(self, contents: bytes, name: str) -> None:
        super().__init__()
        self._contents, self._shared_name = contents, name
        _ = self.resource_handle  # made here: the first call may trace a graph

    def _create_resource(self) -> tf.Tensor:
        from tensorflow_text.python.ops import sentencepiece_tokenizer

        operations = sentencepiece_tokenizer.gen_sentencepiece_tokenizer
        return operations.sentencepiece_op(
            model=self._contents, shared_name=self._shared_name
        )


def read_model(contents: bytes, complaint: str) -> tuple[Any, Any]:
    """Returns the sentencepiece library's processor of a model, and its `ModelProto`.

    Raises:
        UserError: the model is damaged; `complaint` is the message.
    """
    import sentencepiece
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    try:
        proto = model_proto(contents)
        # Both stand after the pieces, so a file that was cut short lacks them.
        if not (proto.HasField("trainer_spec") and proto.HasField("normalizer_spec")):
            raise ValueError("the model lacks its settings")
        return sentencepiece.SentencePieceProcessor(model_proto=contents), proto
    except (DecodeError, RuntimeError, ValueError) as error:
        raise UserError(complaint) from error


def model_proto(contents: bytes) -> Any:
    """Parses a model file into a `sentencepiece.ModelProto`."""
    from sentencepiece import sentencepiece_model_pb2

    # The class is made at import from a description, where type checkers miss it.
    message: Any = sentencepiece_model_pb2
    return message.ModelProto.FromString(contents)
