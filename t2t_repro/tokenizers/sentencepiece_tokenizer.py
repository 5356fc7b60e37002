"""SentencePiece byte-pair encoding in the graph (paper: English-German)."""

from __future__ import annotations

import functools
import importlib.util
import os
from typing import Any

import tensorflow as tf

from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.tokenizer import EOS_ID, PAD_ID, Tokenizer

# Decoding inserts this piece before each row to protect leading spaces, and removes
# its text afterwards.
_MARK_PIECE, _MARK = "<0x41>", "A"


class SentencePieceTokenizer(Tokenizer):
    """Tokenizer of a SentencePiece model (paper section 5.1).

    The ids equal those of the sentencepiece library. Models of `build_vocabulary`
    restore every text exactly. Models with SentencePiece's default normalization do
    not.

    Args:
        contents: Bytes of the model file.
        path: Path of the file; its base name becomes `file_name`.

    Raises:
        UserError: The model is damaged, its pad id is not 0, or its eos id is not 1.
    """

    def __init__(self, contents: bytes, path: str | os.PathLike[str]) -> None:
        """Parses the model and creates its operations."""
        path = os.fspath(path)
        processor, proto = read_model(
            contents, f"{path}: not a SentencePiece model, or damaged; build it again"
        )
        # The library gives user-defined symbols, which text could contain, the id -1.
        pad_id, eos_id = processor.pad_id(), processor.eos_id()
        if (pad_id, eos_id) != (PAD_ID, EOS_ID):
            raise UserError(
                f"{path}: the model has pad id {pad_id} and eos id {eos_id}; train "
                f"it with --pad_id={PAD_ID} --eos_id={EOS_ID} (and --unk_id=2)"
            )
        super().__init__(contents, os.path.basename(path), processor.vocab_size())
        self.unknown_id = processor.unk_id()
        self._model = SharedModel(contents, self.fingerprint)
        # tensorflow_text's decoding strips all leading spaces; the library strips only
        # the one that encoding added. A mark before the text makes both equal.
        mark = processor.piece_to_id(_MARK_PIECE)
        spec = proto.normalizer_spec
        adds_space = spec.add_dummy_prefix and not spec.remove_extra_whitespaces
        self._mark_id = mark if processor.is_byte(mark) and adds_space else None

    @property
    def pieces(self) -> list[str]:
        """The piece of each id, as spelled in the model file."""
        return [piece.piece for piece in model_proto(self._contents).pieces]

    def _to_pieces(self, text: tf.Tensor) -> tf.RaggedTensor:
        return self._model.tokenize(text, tf.int32)

    def _to_text(self, pieces: tf.RaggedTensor) -> tf.Tensor:
        if self._mark_id is None:
            return self._model.detokenize(pieces)
        mark = tf.fill([pieces.nrows(), 1], tf.constant(self._mark_id, tf.int32))
        marked = tf.concat([tf.RaggedTensor.from_tensor(mark), pieces], axis=1)
        text = self._model.detokenize(marked)
        return tf.strings.regex_replace(text, f"^{_MARK} ?", "", replace_global=False)


class SharedModel(tf.saved_model.experimental.TrackableResource):
    """Named resource with a model, shared by all tokenizers of the same model.

    The resource of `tensorflow_text.SentencepieceTokenizer` belongs to a kernel.
    `keras.utils.set_random_seed` clears the kernel cache, which would break tokenizers
    created before the call.

    Args:
        contents: Bytes of the model file, which must be valid.
        name: Name of the resource, different for each model.
    """

    def __init__(self, contents: bytes, name: str) -> None:
        super().__init__()
        self._contents, self._shared_name = contents, name
        _ = self.resource_handle  # create it eagerly, not in a traced graph

    def _create_resource(self) -> tf.Tensor:
        return _operations().sentencepiece_op(
            model=self._contents, shared_name=self._shared_name
        )

    def tokenize(self, text: tf.Tensor, dtype: tf.DType) -> tf.RaggedTensor:
        """Splits string (batch,) into pieces, (batch, None).

        The pieces are ids if `dtype` is int32, or text if it is string.
        """
        values, row_splits = _operations().sentencepiece_tokenize_op(
            self.resource_handle,
            text,
            nbest_size=0,
            alpha=1.0,
            add_bos=False,
            add_eos=False,
            reverse=False,
            out_type=dtype,
        )
        return tf.RaggedTensor.from_row_splits(values, row_splits, validate=False)

    def detokenize(self, pieces: tf.RaggedTensor) -> tf.Tensor:
        """Joins pieces, int32 or string (batch, None), to string (batch,)."""
        return _operations().sentencepiece_detokenize_op(
            self.resource_handle,
            pieces.values,
            pieces.row_splits,
            add_bos=False,
            add_eos=False,
            reverse=False,
        )


@functools.cache
def _operations() -> Any:
    """Loads the SentencePiece operations of tensorflow_text.

    Importing tensorflow_text would load 24 libraries with all of its operations, which
    takes 130 MB and as long as a tenth of TensorFlow's import.
    """
    spec = importlib.util.find_spec("tensorflow_text")
    for folder in (spec and spec.submodule_search_locations) or ():
        path = os.path.join(folder, "python", "ops", "_sentencepiece_tokenizer.so")
        if os.path.exists(path):
            return tf.load_op_library(path)
    # Another version may have another layout.
    from tensorflow_text.python.ops import sentencepiece_tokenizer

    return sentencepiece_tokenizer.gen_sentencepiece_tokenizer


def read_model(contents: bytes, error_message: str) -> tuple[Any, Any]:
    """Returns a model's `SentencePieceProcessor` and `ModelProto`.

    Raises:
        UserError: The model is damaged; `error_message` is the message.
    """
    import sentencepiece
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    try:
        proto = model_proto(contents)
        # Both fields follow the pieces, so a truncated file lacks them.
        if not (proto.HasField("trainer_spec") and proto.HasField("normalizer_spec")):
            raise ValueError("trainer_spec or normalizer_spec is missing")
        if not any(piece.type == piece.UNKNOWN for piece in proto.pieces):
            raise ValueError("the unknown piece is missing")
        return sentencepiece.SentencePieceProcessor(model_proto=contents), proto
    except (DecodeError, RuntimeError, ValueError) as error:
        raise UserError(error_message) from error


def model_proto(contents: bytes) -> Any:
    """Parses a model file into a `sentencepiece.ModelProto`."""
    from sentencepiece import sentencepiece_model_pb2

    # The module creates the class at import, where type checkers cannot see it.
    message: Any = sentencepiece_model_pb2
    return message.ModelProto.FromString(contents)
