"""Signature that returns the attention maps of texts."""

import tensorflow as tf

from t2t_repro.models.attention_maps import attention_maps, stack_maps
from t2t_repro.models.transformer import Transformer
from t2t_repro.serving.sanitize import (
    check_pairs,
    count_omitted,
    is_blank,
    join_notes,
    note_unread_text,
    sentence_notes,
    truncate_texts,
)
from t2t_repro.tokenizers.tokenizer import PAD_ID, Tokenizer, cut_rows
from t2t_repro.translation.translator import Translator

MAX_LENGTH = 128
"""Number of subwords to which both sides are cut, because maps grow quadratically."""

MAX_PAIRS = 64
"""Maximum number of pairs per request."""


class AttentionSignature:
    """Computes the attention maps of texts and their translations.

    Args:
        model: Built model.
        translator: Translator that encodes texts, and translates texts without a given
            translation.
    """

    def __init__(self, model: Transformer, translator: Translator) -> None:
        self._model = model
        self._translator = translator
        self._longest = min(MAX_LENGTH, translator.max_input_length)
        tokenizer = translator.tokenizer
        self._target_names = _names(tokenizer.target, model.vocab_size)
        self._source_names = self._target_names
        if not model.shared:
            rows = model.input_embedding.vocab_size
            self._source_names = _names(tokenizer, rows)

    def __call__(self, text: tf.Tensor, translation: tf.Tensor) -> dict[str, tf.Tensor]:
        """Computes the maps.

        Args:
            text: string (batch,), UTF-8, at most `MAX_PAIRS` texts. Texts and
                translations are cut to `MAX_LENGTH`.
            translation: string (batch,), UTF-8. A blank translation is replaced by the
                model's translation, which is cut, too.

        Returns:
            ``translations``, string (batch,).
            ``source_tokens``, string (batch, source), and ``target_tokens``, string
            (batch, target): subwords including EOS, padded with "".
            ``source_lengths`` and ``target_lengths``, int32 (batch,): numbers of
            subwords, EOS included.
            ``encoder_self_attention``, ``decoder_self_attention`` and
            ``cross_attention``, float32 (batch, layers, heads, queries, keys). Row t of
            the decoder's maps belongs to the prediction of target token t.
            ``notes``, string (batch,): description of the unread part, or "".
        """
        check_pairs(text, translation)
        tf.debugging.assert_less_equal(
            tf.shape(text)[0],
            MAX_PAIRS,
            f"a request for attention maps can contain at most {MAX_PAIRS} texts",
        )
        tokenizer = self._translator.tokenizer
        rows = tokenizer.encode(truncate_texts(text))
        given = tokenizer.target.encode(truncate_texts(translation))
        inputs = cut_rows(rows, self._longest).to_tensor()
        missing = is_blank(truncate_texts(translation)) & ~is_blank(
            truncate_texts(text)
        )
        targets, unread = self._targets(inputs, given, missing)
        notes = join_notes(
            sentence_notes(tokenizer, text, count_omitted(rows, self._longest)),
            note_unread_text(translation, unread, " of the translation"),
        )
        maps = attention_maps(self._model, inputs, targets)
        return {
            "translations": self._translator.decode(targets),
            "source_tokens": tf.gather(tf.constant(self._source_names), inputs),
            "target_tokens": tf.gather(tf.constant(self._target_names), targets),
            "source_lengths": tf.math.count_nonzero(inputs, axis=1, dtype=tf.int32),
            "target_lengths": tf.math.count_nonzero(targets, axis=1, dtype=tf.int32),
            "encoder_self_attention": stack_maps(maps, "encoder", "self_attention"),
            "decoder_self_attention": stack_maps(maps, "decoder", "self_attention"),
            "cross_attention": stack_maps(maps, "decoder", "cross_attention"),
            "notes": notes,
        }

    def _targets(
        self, inputs: tf.Tensor, given: tf.RaggedTensor, missing: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Cuts the given targets, and translates those that are missing.

        Returns:
            Target ids, int32 (batch, target), and the number of subwords that were cut,
            int64 (batch,).
        """
        targets, cut = cut_rows(given, MAX_LENGTH), count_omitted(given, MAX_LENGTH)

        def fill_in() -> tuple[tf.Tensor, tf.Tensor]:
            ids, _ = self._translator.translate_ids(inputs)
            own = tf.RaggedTensor.from_tensor(ids[:, 0], padding=PAD_ID)
            batch = tf.shape(inputs)[0]
            rows = tf.range(batch) + tf.where(missing, batch, 0)
            chosen = tf.gather(tf.concat([targets, own[:, :MAX_LENGTH]], axis=0), rows)
            return chosen.to_tensor(), tf.where(
                missing, count_omitted(own, MAX_LENGTH), cut
            )

        return tf.cond(
            tf.reduce_any(missing), fill_in, lambda: (targets.to_tensor(), cut)
        )


def _names(tokenizer: Tokenizer, rows: int) -> list[str]:
    """Returns the piece of each embedding row; "" for PAD and for unused rows."""
    names = tokenizer.pieces
    return ["", *names[1:], *[""] * (rows - len(names))]
