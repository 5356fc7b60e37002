"""Signatures of the SavedModel: graphs from text to text, or from ids to ids.

A server merges the requests of several clients. Each output therefore depends only on
its row, and no row can make other rows fail: long texts are cut, invalid UTF-8 is
decoded as U+FFFD, and large batches are computed in micro-batches. Only invalid ids
make a whole batch fail.
"""

import dataclasses
from collections.abc import Callable, Sequence

import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.decoding.decode_loop import NO_HYPOTHESIS
from t2t_repro.decoding.lexical_constraints import drop_long_terms
from t2t_repro.fast import int8_matmul, quantization
from t2t_repro.models.transformer import Transformer
from t2t_repro.serving.attention_signature import AttentionSignature
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
from t2t_repro.tokenizers.tokenizer import Tokenizer, cut_rows
from t2t_repro.translation.translator import MAX_INPUT_LENGTH, Translator

# Maximum number of terms per text.
MOST_TERMS = 64

_INEXACT = (
    "this processor does not sum {}-bit weights exactly; export the model with "
    "--int8_weights 7, or in float32"
)

_TEXT = tf.TensorSpec([None], tf.string, name="text")
_TERMS = tf.TensorSpec([None, None], tf.string, name="terms")
_TRANSLATION = tf.TensorSpec([None], tf.string, name="translation")


class ServingModule(tf.Module):
    """The exported module: variables, vocabulary and signatures.

    The graph does not require this package. If it takes text, it requires the
    operations of tensorflow_text.

    Args:
        models: Built model, or the models of an ensemble.
        tokenizer: Tokenizer of the models.
        search: Settings of the search, with `nbest` 1.
        max_input_length: Number of subwords to which texts are cut, EOS included.
        with_terms: Whether to add the signature ``terms``.
        takes_ids: Whether the signatures are those of `IdSignatures`.
        source_lang: Code of the source language, for dividing texts into sentences.

    Attributes:
        functions: Signatures by name; each maps string tensors (batch,) to named
            tensors (batch, ...). ``serving_default``, ``split_sentences``, ``nbest``
            and ``score`` are methods of `SignatureFunctions`, as is ``terms`` if
            `with_terms` is set. A single model also has ``attention`` (see
            `AttentionSignature`).
    """

    def __init__(
        self,
        models: Sequence[Transformer],
        tokenizer: Tokenizer,
        search: DecodingConfig | None = None,
        max_input_length: int = MAX_INPUT_LENGTH,
        with_terms: bool = False,
        takes_ids: bool = False,
        source_lang: str = "en",
    ) -> None:
        super().__init__()
        best = Translator(models, tokenizer, search, max_input_length)
        splitter = SentenceSplitter(tokenizer, max_input_length, source_lang)
        signatures = SignatureFunctions(models, best, splitter)
        weight_bits = quantization.find_weight_bits(models[0])

        def graph(
            function: Callable[..., dict[str, tf.Tensor]], *inputs: tf.TensorSpec
        ) -> tf.types.experimental.GenericFunction:
            if weight_bits:
                function = add_processor_check(function, weight_bits)
            return tf.function(function, input_signature=inputs, autograph=False)

        if takes_ids:
            of_ids = signatures.of_ids.signatures
            self.functions = {name: graph(*each) for name, each in of_ids.items()}
        else:
            self.tokenizer = tokenizer
            self.functions = {
                "serving_default": graph(signatures.translate, _TEXT),
                "split_sentences": graph(signatures.split_sentences, _TEXT),
                "nbest": graph(signatures.nbest, _TEXT),
                "score": graph(signatures.score, _TEXT, _TRANSLATION),
            }
        if with_terms:
            self.functions["terms"] = graph(signatures.with_terms, _TEXT, _TERMS)
        if len(models) == 1 and not takes_ids:
            attention = AttentionSignature(models[0], best)
            self.functions["attention"] = graph(attention, _TEXT, _TRANSLATION)
        # A SavedModel contains the variables that are attributes of the module. A
        # quantized model reads int8 matrices instead of some of its weights.
        variables = [quantization.graph_variables(model) for model in models]
        self.weights = [each for weights, _ in variables for each in weights]
        self.matrices = [each for _, matrices in variables for each in matrices]


class SignatureFunctions:
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


def add_processor_check(
    function: Callable[..., dict[str, tf.Tensor]], weight_bits: int
) -> Callable[..., dict[str, tf.Tensor]]:
    """Makes a function fail on processors that do not sum int8 matmuls exactly.

    Args:
        function: Function of a signature, used in a graph.
        weight_bits: Number of bits of its int8 matrices.
    """

    def checked(*inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        is_exact = int8_matmul.is_exact(weight_bits)
        message = _INEXACT.format(weight_bits)
        check = tf.debugging.assert_equal(is_exact, True, message)
        with tf.control_dependencies([check]):
            return function(*map(tf.identity, inputs))

    return checked


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
