"""keras-hub tokenizer for every vocabulary file of this package."""

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import keras
import keras_hub
import numpy as np

from t2t_repro.hub.backbone import TransformerBackbone
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers import plain_tokenizer
from t2t_repro.tokenizers.plain_tokenizer import EOS_ID, PAD_ID


@keras.saving.register_keras_serializable("t2t_repro")
class TransformerTokenizer(keras_hub.tokenizers.Tokenizer):
    """Tokenizer of SentencePiece models, word pieces and imported Marian models.

    It runs in Python, with the ids and texts of `plain_tokenizer`, on every backend;
    tf.data calls it through ``tf.numpy_function``.

    Args:
        vocabulary: Path of a vocabulary file: `*.model` (SentencePiece), `*.subwords`
            (word pieces), `*.sides` or `*.marian`. None: the file is loaded from a
            preset.
        file_name: Name of the vocabulary file in a preset; None: that of `vocabulary`.

    Raises:
        UserError: The vocabulary is missing or damaged.
    """

    backbone_cls = TransformerBackbone

    def __init__(
        self,
        vocabulary: str | os.PathLike[str] | None = None,
        file_name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        # The start token of the targets is PAD: see `Transformer.decoder_input`.
        self.start_token_id = self.pad_token_id = PAD_ID
        self.end_token_id = EOS_ID
        self._set_file_name(file_name)
        if vocabulary is not None:
            self._load(Path(vocabulary))
        # Keras quantizes only models whose layers are all built.
        self.built = True

    def _set_file_name(self, name: str | None) -> None:
        self.file_name = name
        self.file_assets = [] if name is None else [name]

    def _load(self, path: Path) -> None:
        """Reads a vocabulary file."""
        try:
            self._contents = path.read_bytes()
            self._plain = plain_tokenizer.load(path)
        except (OSError, ValueError) as error:
            raise UserError(f"{error}; give the path of a vocabulary file") from error
        self._set_file_name(path.name)

    def load_assets(self, dir_path: str) -> None:
        """Reads the vocabulary file in the folder of a preset's assets."""
        self._load(Path(dir_path) / self.file_assets[0])

    def save_assets(self, dir_path: str) -> None:
        """Writes the vocabulary file into the folder of a preset's assets."""
        (Path(dir_path) / self.file_assets[0]).write_bytes(self._contents)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments, without the vocabulary."""
        return super().get_config() | {"file_name": self.file_name}

    def vocabulary_size(self) -> int:
        """Returns the number of source ids."""
        return self._plain.sizes[0]

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a source text, EOS included; only EOS for a blank text."""
        return self._plain.encode(text)

    def encode_target(self, text: str) -> list[int]:
        """Returns the ids of a translation, EOS included."""
        return self._plain.encode_target(text)

    def tokenize(self, inputs: Any) -> Any:
        """Converts source texts to ids, without EOS.

        Args:
            inputs: A string, or strings (batch,).

        Returns:
            A list of ids, or a list of lists; in a graph, an int32 tensor (length,), or
            a ragged one (batch, None).
        """

        def encode(texts: np.ndarray) -> list[np.ndarray]:
            rows = [self.encode(text)[:-1] for text in texts.flat]
            lengths = np.array([len(row) for row in rows], np.int32)
            ids = np.array([each for row in rows for each in row], np.int32)
            return [ids, lengths]

        ids, lengths = run_in_python(encode, 2, inputs)
        if isinstance(ids, np.ndarray):
            rows = np.split(ids, np.cumsum(lengths)[:-1])
            lists = [row.tolist() for row in rows[: len(lengths)]]
            return lists if np.ndim(to_strings(inputs)) else lists[0]
        tf = sys.modules["tensorflow"]
        ids.set_shape([None])
        lengths.set_shape([None])
        ragged = tf.RaggedTensor.from_row_lengths(ids, lengths)
        return ragged if inputs.shape.rank else ids

    def detokenize(self, inputs: Iterable[Any]) -> Any:
        """Converts ids of translations to texts; EOS ends a text.

        Args:
            inputs: Ids (length,), or (batch, length), padded or ragged.

        Returns:
            A string, or a list of strings.
        """
        rows = [keras.ops.convert_to_numpy(row) for row in inputs]
        if rows and rows[0].ndim == 0:
            return self._plain.decode(rows)
        return [self._plain.decode(row) for row in rows]


def to_strings(texts: Any) -> np.ndarray:
    """Converts strings, bytes or a tensor of them to an array of `str` objects.

    Invalid UTF-8 becomes U+FFFD, as in the tokenizers with TensorFlow.
    """
    array = np.array(texts, object)
    flat = [
        each.decode("utf-8", "replace") if isinstance(each, bytes) else str(each)
        for each in array.flat
    ]
    strings = np.empty(len(flat), object)
    strings[:] = flat
    return strings.reshape(array.shape)


def run_in_python(
    function: Callable[..., list[np.ndarray]], count: int, *texts: Any
) -> list[Any]:
    """Calls a function of arrays of strings, also in a graph, as in tf.data.

    Args:
        function: Returns `count` int32 arrays.
        count: Number of arrays.
        *texts: Strings, or tensors of strings.

    Returns:
        The arrays; in a graph, tensors without a static shape.
    """
    tf = sys.modules.get("tensorflow")
    if tf is None or tf.executing_eagerly():
        return function(*map(to_strings, texts))
    return tf.numpy_function(
        lambda *arrays: function(*map(to_strings, arrays)),
        [tf.convert_to_tensor(text, tf.string) for text in texts],
        [tf.int32] * count,
    )
