"""Signatures of a SavedModel that takes and returns text."""

import dataclasses
from collections.abc import Callable, Sequence

import tensorflow as tf

from t2t_repro.decoding.decode_loop import NO_HYPOTHESIS
from t2t_repro.decoding.lexical_constraints import drop_long_terms
from t2t_repro.models.transformer import Transformer
from t2t_repro.serving.id_signatures import SEARCH_POSITIONS, IdSignatures
from t2t_repro.serving.microbatch import compute_in_microbatches, count_rows
from t2t_repro.serving.sanitize import (
    check_pairs,
    count_omitted,
    is_blank,
    join_notes,
    note_missing_terms,
    note_unread,
    note_unread_labels,
    note_unread_text,
    sentence_notes,
    term_rows,
    truncate_texts,
)
from t2t_repro.texts.sentence_rules import FIRST_BREAK
from t2t_repro.texts.sentences import Sentences, SentenceSplitter
from t2t_repro.tokenizers.tokenizer import cut_rows
from t2t_repro.translation.translator import Translator

# Maximum number of terms per text.
MOST_TERMS = 64


class TextSignatures:
    """Functions of the signatures; the object itself is not exported.

    Args:
        models: Built models.
        best: Translator with these models; its `search.nbest` is 1.
        splitter: Rule by which texts are divided.

    Attributes:
        of_ids: The same functions for ids.
    """

    def __init__(
        self,
        models: Sequence[Transformer],
        best: Translator,
        splitter: SentenceSplitter,
    ) -> None:
        nbest = dataclasses.replace(best.search, nbest=best.search.beam_size)
        self._best = best
        self._list = Translator(models, best.tokenizer, nbest, best.max_input_length)
        self.of_ids = IdSignatures(models, best, self._list)
        self._splitter = splitter

    def translate(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Translates sentences, or the lines of texts.

        Args:
            text: string (batch,), UTF-8. Each line is a sentence, which is cut to the
                maximum input length.

        Returns:
            ``translations``, string (batch,): UTF-8 with the line breaks of the text,
            and without others; "" for a text without words.
            ``scores``, float32 (batch,): log probability divided by the length penalty;
            the mean of a text's lines; 0 for a text without words.
            ``notes``, string (batch,): description of the unread part, or "".
        """
        return self._join(text, self._splitter.lines)

    def split_sentences(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Translates texts of several sentences, which are translated separately.

        Args:
            text: string (batch,), UTF-8, cut to `MOST_CHARACTERS` characters.

        Returns:
            As in `translate`, with the white space between the sentences.
        """
        return self._join(text, self._splitter.sentences, after_space=True)

    def _join(
        self,
        text: tf.Tensor,
        divide: Callable[[tf.Tensor], Sentences],
        after_space: bool = False,
    ) -> dict[str, tf.Tensor]:
        """Divides texts, translates the parts and joins their translations.

        `after_space` is as in `note_unread_labels`.
        """
        whole, text = text, truncate_texts(text)
        lines = tf.strings.regex_replace(text, f"^{FIRST_BREAK}", "")
        parts = divide(text)
        used = tf.where(~is_blank(parts.inputs))
        texts, scores, cut, _ = _search(self._best, tf.gather_nd(parts.inputs, used))
        batch, blank = tf.shape(text)[0], tf.zeros_like(parts.pieces)
        translations = tf.tensor_scatter_nd_update(blank, used, texts[:, 0])
        rows = tf.gather_nd(parts.rows, used)
        return {
            "translations": parts.join(translations, batch),
            "scores": tf.math.unsorted_segment_mean(scores[:, 0], rows, batch),
            "notes": join_notes(
                note_unread_text(whole, tf.math.unsorted_segment_sum(cut, rows, batch)),
                note_unread_labels(self._best.tokenizer, lines, after_space),
            ),
        }

    def nbest(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the n-best lists of sentences, best first.

        Args:
            text: string (batch,), UTF-8.

        Returns:
            ``translations``, string (batch, beam), and ``scores``, float32 (batch,
            beam). The first translation equals that of `translate`. A missing
            hypothesis has the text "" and the score -1e7. ``notes`` are as in
            `translate`.
        """
        texts, scores, cut, _ = _search(self._list, text)
        notes = sentence_notes(self._list.tokenizer, text, cut)
        return {"translations": texts, "scores": scores, "notes": notes}

    def with_terms(self, text: tf.Tensor, terms: tf.Tensor) -> dict[str, tf.Tensor]:
        """Translates sentences with lexical constraints.

        Args:
            text: string (batch,), UTF-8.
            terms: string (batch, 1), UTF-8: terms that each translation must contain,
                separated by line breaks, or "". Only the first `MOST_TERMS` are read.
                There may also be several columns, padded with "", whose strings have no
                line breaks. TensorFlow Serving pads merged requests with different
                numbers of columns with each request's first string, which is exact if
                the request has one text, if its first string has a line break, or if
                each row begins with "".

        Returns:
            As in `translate`. ``notes`` also name the terms that the translation lacks:
            the vocabulary cannot spell them, or the length limit leaves no room.
        """
        check_pairs(text, terms)
        is_padding = tf.equal(terms, terms[:, :1])
        is_padding |= tf.strings.regex_full_match(terms, r"(?s).*\n.*")
        is_padding &= tf.range(tf.shape(terms)[1]) > 0
        terms = tf.where(is_padding, "", terms)
        whole = tf.strings.strip(tf.strings.reduce_join(terms, 1, separator="\n"))
        rows = term_rows(whole)
        terms = rows[:, :MOST_TERMS].to_tensor("")
        ids = self._best.encode_terms(terms)
        texts, scores, cut, limits = _search(self._best, text, ids)
        is_spelled = tf.reduce_any(self._best.encode_terms(terms, False) > 0, axis=2)
        has_room = tf.equal(drop_long_terms(ids, limits), ids)[:, :, 0]
        is_met = is_spelled & has_room & tf.not_equal(texts[:, :1], "")
        notes = join_notes(
            sentence_notes(self._best.tokenizer, text, cut),
            note_unread_text(whole, tf.zeros_like(cut), " of the terms"),
            note_unread(count_omitted(rows, MOST_TERMS), "terms"),
            note_missing_terms(tf.where(is_met | is_blank(terms), "", terms)),
        )
        return {"translations": texts[:, 0], "scores": scores[:, 0], "notes": notes}

    def score(self, text: tf.Tensor, translation: tf.Tensor) -> dict[str, tf.Tensor]:
        """Scores given translations.

        Args:
            text: string (batch,), UTF-8.
            translation: string (batch,), UTF-8, cut to the maximum output length.

        Returns:
            ``log_probability``, float32 (batch,): sum over the translation's subwords,
            EOS included, in nats.
            ``notes``, string (batch,), as in `translate`.
        """
        check_pairs(text, translation)
        longest = self._best.search.longest(self._best.max_input_length)
        inputs = self._best.tokenizer.encode(truncate_texts(text))
        targets = self._best.tokenizer.target.encode(truncate_texts(translation))
        cut = count_omitted(inputs, self._best.max_input_length)
        notes = join_notes(
            sentence_notes(self._best.tokenizer, text, cut),
            note_unread_text(
                translation, count_omitted(targets, longest), " of the translation"
            ),
        )
        outputs = self.of_ids.score_rows(inputs, targets, longest)
        return outputs | {"notes": notes}


def _search(
    translator: Translator, text: tf.Tensor, terms: tf.Tensor | None = None
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    """Translates texts, string (batch,), with terms from `Translator.encode_terms`.

    Returns:
        Translations, string (batch, nbest), scores, float32 (batch, nbest), the number
        of subwords that were not read, int64 (batch,), and the maximum number of tokens
        of each translation, int32 (batch,).
    """
    nbest, longest = translator.search.nbest, translator.max_input_length
    text = truncate_texts(text)
    rows = translator.tokenizer.encode(text)
    inputs = cut_rows(rows, longest).to_tensor()
    lengths = tf.math.count_nonzero(inputs, axis=1, dtype=tf.int32)
    # The longest first, so that each micro-batch is as wide as its first row.
    order = tf.argsort(lengths, direction="DESCENDING", stable=True)

    def search(inputs: tf.Tensor, *terms: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        inputs = inputs[:, : tf.math.count_nonzero(inputs[0], dtype=tf.int32)]
        ids, scores = translator.translate_ids(inputs, None, *terms)
        ids = ids[:, :nbest]
        rows, length = tf.shape(ids)[0], tf.shape(ids)[2]
        # (rows, nbest, target) -> (rows * nbest, target)
        texts = translator.decode(tf.reshape(ids, [rows * nbest, length]))
        texts = tf.strings.strip(texts) if terms else texts
        return tf.reshape(texts, [rows, nbest]), scores[:, :nbest]

    tensors = [inputs] if terms is None else [inputs, terms]
    limits = translator.search.longest(lengths)
    results = compute_in_microbatches(
        search,
        [tf.gather(tensor, order) for tensor in tensors],
        count_rows(SEARCH_POSITIONS, tf.gather(limits, order)),
        [
            tf.TensorSpec([None, nbest], tf.string),
            tf.TensorSpec([None, nbest], tf.float32),
        ],
    )
    texts, scores = (tf.gather(each, tf.argsort(order)) for each in results)
    # A text of invisible characters may consist of EOS only.
    blank = is_blank(text)[:, None] | (rows.row_lengths() < 2)[:, None]
    blank_scores = tf.constant([[0.0] + [NO_HYPOTHESIS] * (nbest - 1)])
    return (
        tf.where(blank, "", texts),
        tf.where(blank, blank_scores, scores),
        tf.where(blank[:, 0], tf.constant(0, tf.int64), count_omitted(rows, longest)),
        limits,
    )
