"""What every attention of a model looks at, from text, as graph code."""

import tensorflow as tf

from t2t_repro.models.attention_maps import attention_maps
from t2t_repro.models.transformer import Transformer
from t2t_repro.serving.sanitize import beginning, check_pairs, is_blank
from t2t_repro.tokenizers.tokenizer import PAD_ID, Tokenizer, cut_rows
from t2t_repro.translation.translator import Translator

MAX_LENGTH = 128
"""Both sides of a pair are cut to as many subwords: maps grow with their product."""

MAX_PAIRS = 64
"""More pairs at once are refused."""


class AttentionSignature:
    """Attention maps of texts and their translations.

    Args:
        model: already built.
        translator: encodes texts, and translates those without a translation.
    """

    def __init__(self, model: Transformer, translator: Translator) -> None:
        self._model = model
        self._translator = translator
        self._longest = min(MAX_LENGTH, translator.max_input_length)
        source = translator.tokenizer
        self._target_names = _names(source.target, model.vocab_size)
        self._source_names = self._target_names
        if not model.shared:
            rows = model.input_embedding.vocab_size
            self._source_names = _names(source, rows)

    def __call__(self, text: tf.Tensor, translation: tf.Tensor) -> dict[str, tf.Tensor]:
        """Computes the maps.

        Args:
            text: string (batch,), UTF-8, at most `MAX_PAIRS`.
            translation: string (batch,), UTF-8; the model's own stands in for a blank
                one. Both are cut to `MAX_LENGTH`.

        Returns:
            ``translations``, string (batch,); ``source_tokens``, string (batch,
            source), and ``target_tokens``, string (batch, target), the names of the
            subwords with EOS, empty after it; ``source_lengths`` and
            ``target_lengths``, int32 (batch,), how many there are;
            ``encoder_self_attention``, ``decoder_self_attention`` and
            ``cross_attention``, float32 (batch, layers, heads, queries, keys). Row t
            of the decoder's maps predicts target symbol t.
        """
        check_pairs(text, translation)
        tf.debugging.assert_less_equal(
            tf.shape(text)[0],
            MAX_PAIRS,
            f"attention maps are computed for at most {MAX_PAIRS} texts at once",
        )
        text, translation = beginning(text), beginning(translation)
        inputs = self._translator.tokenizer.encode(text)
        inputs = cut_rows(inputs, self._longest).to_tensor()
        missing = is_blank(translation) & ~is_blank(text)
        targets = self._targets(inputs, translation, missing)
        maps = attention_maps(self._model, inputs, targets)
        return {
            "translations": self._translator.decode(targets),
            "source_tokens": tf.gather(tf.constant(self._source_names), inputs),
            "target_tokens": tf.gather(tf.constant(self._target_names), targets),
            "source_lengths": tf.math.count_nonzero(inputs, axis=1, dtype=tf.int32),
            "target_lengths": tf.math.count_nonzero(targets, axis=1, dtype=tf.int32),
            "encoder_self_attention": _layers(maps, "encoder", "self_attention"),
            "decoder_self_attention": _layers(maps, "decoder", "self_attention"),
            "cross_attention": _layers(maps, "decoder", "cross_attention"),
        }

    def _targets(
        self, inputs: tf.Tensor, translation: tf.Tensor, missing: tf.Tensor
    ) -> tf.Tensor:
        """Encodes translations, int32 (batch, target); the model gives the missing."""
        translator = self._translator
        given = translator.tokenizer.target.encode(translation)
        given = cut_rows(given, MAX_LENGTH).to_tensor()

        def filled_in() -> tf.Tensor:
            ids, _ = translator.translate_ids(inputs)
            own = ids[:, 0, :MAX_LENGTH]
            width = tf.maximum(tf.shape(own)[1], tf.shape(given)[1])
            own, theirs = (_padded(rows, width) for rows in (own, given))
            both = tf.where(missing[:, None], own, theirs)
            # Those of the model that were not asked for may have been the longest.
            used = tf.reduce_any(tf.not_equal(both, PAD_ID), axis=0)
            return both[:, : tf.math.count_nonzero(used)]

        return tf.cond(tf.reduce_any(missing), filled_in, lambda: given)


def _names(tokenizer: Tokenizer, rows: int) -> list[str]:
    """Names the rows of a table; padding and those that only fill it have no name."""
    names = tokenizer.pieces
    return ["", *names[1:], *[""] * (rows - len(names))]


def _padded(rows: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
    """Pads int32 (batch, length) to (batch, width)."""
    return tf.pad(rows, [[0, 0], [0, width - tf.shape(rows)[1]]])


def _layers(maps: dict[str, tf.Tensor], side: str, attention: str) -> tf.Tensor:
    """Joins the maps of all layers: float32 (batch, layers, heads, queries, keys)."""
    found = [
        tf.cast(weights, tf.float32)
        for name, weights in maps.items()
        if name.startswith(f"{side}/") and name.endswith(f"/{attention}")
    ]
    return tf.stack(found, axis=1)
