"""keras-hub preprocessor: texts to ids, and the length limits of translations."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import keras_hub
import numpy as np
from keras import ops

from t2t_repro.hub.backbone import INPUTS, TransformerBackbone
from t2t_repro.hub.tokenizer import TransformerTokenizer, run_in_python, to_strings
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.plain_tokenizer import EOS_ID, PAD_ID

LIMITS = "decoder_limits"
"""Key of the length limits in the result of `generate_preprocess`."""

_BUCKET = 16


@keras.saving.register_keras_serializable("t2t_repro")
class TransformerSeq2SeqLMPreprocessor(keras_hub.models.Seq2SeqLMPreprocessor):
    """Converts pairs of texts for training, and texts for `generate`.

    Training pairs are padded to the two sequence lengths, as XLA needs. Batches of
    `generate` are padded to the next multiple of 16, so that few shapes are compiled.

    Args:
        tokenizer: Tokenizer of both sides.
        encoder_sequence_length: Number of subwords to which sources are cut, EOS
            included.
        decoder_sequence_length: Number of subwords to which targets are cut in
            training, EOS included; `generate` does not use it.
        extra_length: A translation has at most `length_factor` times the tokens of its
            source plus this number, EOS included in both (paper section 6.1).
        length_factor: Factor of the source's length; see `extra_length`.
        **kwargs: Arguments of the base class.

    Call arguments:
        x: Dictionary of ``encoder_text`` and ``decoder_text``, strings, each a string
            or (batch,).

    Returns:
        Inputs of the backbone, labels and weights of the labels.
    """

    backbone_cls = TransformerBackbone
    tokenizer_cls = TransformerTokenizer

    def __init__(
        self,
        tokenizer: TransformerTokenizer,
        encoder_sequence_length: int = 512,
        decoder_sequence_length: int = 512,
        extra_length: int = 50,
        length_factor: float = 1.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            tokenizer, encoder_sequence_length, decoder_sequence_length, **kwargs
        )
        self.extra_length, self.length_factor = extra_length, length_factor
        self.built = True

    def build(self, input_shape: object = None) -> None:
        """Does nothing; the base class creates packers that add start tokens."""

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments."""
        return super().get_config() | {
            "encoder_sequence_length": self.encoder_sequence_length,
            "decoder_sequence_length": self.decoder_sequence_length,
            "extra_length": self.extra_length,
            "length_factor": self.length_factor,
        }

    def call(
        self,
        x: dict[str, Any],
        y: object = None,
        sample_weight: object = None,
        *,
        encoder_sequence_length: int | None = None,
        decoder_sequence_length: int | None = None,
        sequence_length: int | None = None,
    ) -> Any:
        """Converts training pairs; see the class.

        The lengths replace those of the constructor; `sequence_length` is an alias of
        `decoder_sequence_length`. `y` and `sample_weight` are ignored, as in keras-hub.
        In a graph of tf.data the results are tensors, otherwise NumPy arrays. Raises
        UserError if `x` lacks a side.
        """
        source_length = encoder_sequence_length or self.encoder_sequence_length
        target_length = decoder_sequence_length or sequence_length
        target_length = target_length or self.decoder_sequence_length

        def encode(sources: np.ndarray, targets: np.ndarray) -> list[np.ndarray]:
            source_rows = self._encode(self.tokenizer.encode, sources, source_length)
            rows = self._encode(self.tokenizer.encode_target, targets, target_length)
            target_rows = [[PAD_ID, *row] for row in rows]
            return [
                *_pad(source_rows, source_length, sources.shape),
                *_pad(target_rows, target_length + 1, targets.shape),
            ]

        if not (isinstance(x, dict) and x.keys() >= {"encoder_text", "decoder_text"}):
            raise UserError(
                "training needs a dictionary of texts, encoder_text and decoder_text"
            )
        texts = x["encoder_text"], x["decoder_text"]
        source, source_mask, target, target_mask = run_in_python(encode, 4, *texts)
        if not isinstance(source, np.ndarray):
            for each in (source, source_mask):
                each.set_shape([*texts[0].shape, source_length])
            for each in (target, target_mask):
                each.set_shape([*texts[1].shape, target_length + 1])
        inputs = source, source_mask, target[..., :-1], target_mask[..., :-1]
        return keras.utils.pack_x_y_sample_weight(
            dict(zip(INPUTS, inputs, strict=True)),
            target[..., 1:],
            target_mask[..., 1:],
        )

    def generate_preprocess(
        self,
        x: Any,
        *,
        encoder_sequence_length: int | None = None,
        decoder_sequence_length: int | None = None,
        sequence_length: int | None = None,
    ) -> dict[str, Any]:
        """Converts texts for `generate`.

        Args:
            x: Source texts (batch,), or a dictionary of these as ``encoder_text`` and
                prefixes of the translations as ``decoder_text``.
            encoder_sequence_length: Number of subwords to which sources are cut, EOS
                included; defaults to that of the constructor.
            decoder_sequence_length: Upper bound on the length of a translation, start
                token and EOS included; None: only the limit of each source.
            sequence_length: Alias of `decoder_sequence_length`.

        Returns:
            Inputs of the backbone, and the maximum number of tokens of each translation
            as ``decoder_limits``, int32 (batch,); 0 for a blank source.

        Raises:
            UserError: A prefix is longer than the limit, or the numbers of texts and
                prefixes differ.
        """
        texts = x if isinstance(x, dict) else {"encoder_text": x}
        sources = to_strings(texts["encoder_text"]).reshape(-1)
        prefixes = to_strings(texts.get("decoder_text", [""] * len(sources)))
        if prefixes.size != sources.size:
            raise UserError(
                f"encoder_text has {sources.size:,} texts, decoder_text "
                f"{prefixes.size:,}: give one prefix per text"
            )
        longest = encoder_sequence_length or self.encoder_sequence_length
        rows = self._encode(self.tokenizer.encode, sources, longest)
        lengths = np.array([len(row) for row in rows])
        # Only EOS: the text is blank.
        limits = np.where(lengths > 1, self._limit(lengths), 0)
        source_width = min(-(-lengths.max() // _BUCKET) * _BUCKET, longest)
        width = 1 + int(self._limit(source_width))
        if bound := decoder_sequence_length or sequence_length:
            width = min(width, bound)
        limits = np.minimum(limits, width - 1)
        prompts = []
        for prefix, limit in zip(prefixes.flat, limits, strict=True):
            prompt = self.tokenizer.encode_target(prefix)[:-1] if limit else []
            if len(prompt) > limit:
                raise UserError(
                    f"the prefix {prefix[:40]!r} has {len(prompt):,} subwords, but its "
                    f"translation at most {limit:,}; shorten it or set max_length"
                )
            prompts.append([PAD_ID, *prompt])
        arrays = [*_pad(rows, source_width, (-1,)), *_pad(prompts, width, (-1,))]
        inputs = dict(zip(INPUTS, arrays, strict=True)) | {LIMITS: limits}
        return {
            key: ops.convert_to_tensor(each, "int32") for key, each in inputs.items()
        }

    def generate_postprocess(self, x: dict[str, Any]) -> list[str]:
        """Converts the ids of translations, int32 (batch, length), to texts."""
        ids, mask = x["decoder_token_ids"], x["decoder_padding_mask"]
        return self.tokenizer.detokenize(ids * ops.cast(mask, ids.dtype))

    def _limit(self, lengths: Any) -> Any:
        """Returns the maximum number of tokens of translations of sources."""
        # float32, so that products round as in `DecodingConfig.longest`.
        factor = np.float32(self.length_factor)
        scaled = np.ceil(np.asarray(lengths, np.float32) * factor)
        return scaled.astype(np.int32) + self.extra_length

    @staticmethod
    def _encode(
        encode: Callable[[str], list[int]], texts: np.ndarray, longest: int
    ) -> list[list[int]]:
        """Encodes texts, and cuts the rows to at most `longest` ids with EOS."""
        rows = map(encode, texts.flat)
        return [[*row[:-1][: longest - 1], EOS_ID] for row in rows]


def _pad(
    rows: Sequence[Sequence[int]], width: int, shape: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Returns padded ids and their mask, int32 (*shape, width)."""
    ids, mask = np.zeros((2, len(rows), width), np.int32)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
        mask[number, : len(row)] = 1
    return ids.reshape(*shape, width), mask.reshape(*shape, width)
