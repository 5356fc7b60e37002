"""What the SavedModel answers: graphs from text to text.

A server merges the requests of several clients, so an answer must depend on its row
alone, and no row may make others fail: what is too long is cut, what is no UTF-8 is
read as U+FFFD, and a batch of any size is computed in parts.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence

import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.decoding.decode_loop import NO_HYPOTHESIS
from t2t_repro.fast import int8_matmul, quantization
from t2t_repro.models.log_probs import log_probs
from t2t_repro.models.transformer import Transformer
from t2t_repro.serving.attention_signature import AttentionSignature
from t2t_repro.serving.microbatch import in_parts, rows_within
from t2t_repro.serving.sanitize import beginning, check_pairs, is_blank
from t2t_repro.tokenizers.tokenizer import Tokenizer, cut_rows
from t2t_repro.translation.translator import MAX_INPUT_LENGTH, Translator

# Positions that are searched at once: sentences times their longest possible output.
# With a base model and a beam of 4 they are at most 0.8 GB of caches (6 layers of keys
# and values, 512 channels of 4 bytes each), twice that while they are copied.
_SEARCH_POSITIONS = 8192
# Terms that a text may ask for.
MOST_TERMS = 64
# Positions that are scored at once, each with a logit for every symbol.
_SCORE_POSITIONS = 2048

_INEXACT = (
    "this processor has no instructions for 8-bit products (VNNI); export in float32"
)

_TEXT = tf.TensorSpec([None], tf.string, name="text")
_TERMS = tf.TensorSpec([None, None], tf.string, name="terms")
_TRANSLATION = tf.TensorSpec([None], tf.string, name="translation")


class ServingModule(tf.Module):
    """What is exported: the variables, the vocabulary, and the signatures.

    The graph needs tensorflow_text's operations and nothing of this package.

    Args:
        models: a model, already built, or several, which translate as one.
        tokenizer: their vocabulary.
        search: how translations are found; its `nbest` is 1.
        max_input_length: longer texts are cut to as many subwords, EOS included.
        with_terms: whether there is a signature ``terms``, too.

    Attributes:
        functions: the signatures by name, each from string tensors (batch,) to tensors
            (batch, ...) by name: ``serving_default``, ``nbest`` and ``score`` (see
            `SignatureFunctions`); of a single model, ``attention`` (see
            `AttentionSignature`); with `with_terms`, ``terms``.
    """

    def __init__(
        self,
        models: Sequence[Transformer],
        tokenizer: Tokenizer,
        search: DecodingConfig | None = None,
        max_input_length: int = MAX_INPUT_LENGTH,
        with_terms: bool = False,
    ) -> None:
        super().__init__()
        answers = SignatureFunctions(
            models, tokenizer, search or DecodingConfig(), max_input_length
        )
        in_eight_bits = any(map(quantization.is_quantized, models))

        def graph(
            function: Callable[..., dict[str, tf.Tensor]], *inputs: tf.TensorSpec
        ) -> tf.types.experimental.GenericFunction:
            if in_eight_bits:
                function = _where_exact(function)
            return tf.function(function, input_signature=inputs, autograph=False)

        self.tokenizer = tokenizer
        self.functions = {
            "serving_default": graph(answers.translate, _TEXT),
            "nbest": graph(answers.nbest, _TEXT),
            "score": graph(answers.score, _TEXT, _TRANSLATION),
        }
        if with_terms:
            self.functions["terms"] = graph(answers.with_terms, _TEXT, _TERMS)
        if len(models) == 1:
            attention = AttentionSignature(models[0], answers.best)
            self.functions["attention"] = graph(attention, _TEXT, _TRANSLATION)
        # A SavedModel contains the variables that are attributes of the module. A
        # quantized model reads int8 matrices instead of some of its weights.
        variables = [quantization.graph_variables(model) for model in models]
        self.weights = [each for weights, _ in variables for each in weights]
        self.matrices = [each for _, matrices in variables for each in matrices]


class SignatureFunctions:
    """The graphs behind the signatures, in a plain object that is not exported."""

    def __init__(
        self,
        models: Sequence[Transformer],
        tokenizer: Tokenizer,
        search: DecodingConfig,
        max_input_length: int,
    ) -> None:
        every = dataclasses.replace(search, nbest=search.beam_size)
        self.best = Translator(models, tokenizer, search, max_input_length)
        self._list = Translator(models, tokenizer, every, max_input_length)
        self._models = models

    def translate(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Translates sentences.

        Args:
            text: string (batch,), UTF-8.

        Returns:
            ``translations``, string (batch,), UTF-8 without line breaks, empty for a
            blank text; ``scores``, float32 (batch,): log probability over length
            penalty, 0 for a blank text.
        """
        texts, scores = _search(self.best, text)
        return {"translations": texts[:, 0], "scores": scores[:, 0]}

    def nbest(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Finds the best translations of sentences, best first.

        Args:
            text: string (batch,), UTF-8.

        Returns:
            ``translations``, string (batch, beam), and ``scores``, float32 (batch,
            beam); a place that no hypothesis fills is empty and has the score -1e7.
            The first is that of `translate`.
        """
        texts, scores = _search(self._list, text)
        return {"translations": texts, "scores": scores}

    def with_terms(self, text: tf.Tensor, terms: tf.Tensor) -> dict[str, tf.Tensor]:
        """Translates sentences so that given terms stand in the translations.

        Args:
            text: string (batch,), UTF-8.
            terms: string (batch, terms), UTF-8, at most `MOST_TERMS`, of the target
                language; an empty one asks for nothing.

        Returns:
            As `translate`.
        """
        check_pairs(text, terms)
        tf.debugging.assert_less_equal(
            tf.shape(terms)[1], MOST_TERMS, f"at most {MOST_TERMS} terms for a text"
        )
        texts, scores = _search(self.best, text, terms)
        return {"translations": texts[:, 0], "scores": scores[:, 0]}

    def score(self, text: tf.Tensor, translation: tf.Tensor) -> dict[str, tf.Tensor]:
        """Scores given translations.

        Args:
            text: string (batch,), UTF-8.
            translation: string (batch,), UTF-8, cut to what the model could have given.

        Returns:
            ``log_probability``, float32 (batch,), the sum over the translation's
            subwords and EOS, nats.
        """
        check_pairs(text, translation)
        longest = self.best.search.longest(self.best.max_input_length)
        inputs = self.best.encode(beginning(text))
        targets = self.best.tokenizer.target.encode(beginning(translation))
        targets = cut_rows(targets, longest).to_tensor()
        width = tf.maximum(tf.shape(inputs)[1], tf.shape(targets)[1])
        (found,) = in_parts(
            self._scored,
            [inputs, targets],
            rows_within(_SCORE_POSITIONS, width),
            [tf.TensorSpec([None], tf.float32)],
        )
        return {"log_probability": found}

    def _scored(self, inputs: tf.Tensor, targets: tf.Tensor) -> list[tf.Tensor]:
        """Returns the log probability of each target, float32 (batch,)."""
        each = [log_probs(model, inputs, targets) for model in self._models]
        # The mean of the models' probabilities, as in `EnsembleDecoder`.
        found = tf.reduce_logsumexp(tf.stack(each), axis=0) - math.log(len(each))
        return [tf.reduce_sum(found, axis=1)]


def _where_exact(
    function: Callable[..., dict[str, tf.Tensor]],
) -> Callable[..., dict[str, tf.Tensor]]:
    """Lets a graph fail where sums of 8-bit products would be wrong."""

    def answer(*inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        check = tf.debugging.assert_equal(int8_matmul.is_exact(), True, _INEXACT)
        with tf.control_dependencies([check]):
            return function(*map(tf.identity, inputs))

    return answer


def _search(
    translator: Translator, text: tf.Tensor, terms: tf.Tensor | None = None
) -> tuple[tf.Tensor, tf.Tensor]:
    """Translates: string (batch,) -> string and float32 (batch, nbest)."""
    nbest = translator.search.nbest
    text = beginning(text)
    inputs = translator.encode(text)

    def search(inputs: tf.Tensor, *terms: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        ids, scores = translator.translate_ids(inputs, None, *terms)
        ids = ids[:, :nbest]
        rows, length = tf.shape(ids)[0], tf.shape(ids)[2]
        # (rows, nbest, target) -> (rows * nbest, target)
        texts = translator.decode(tf.reshape(ids, [rows * nbest, length]))
        return tf.reshape(texts, [rows, nbest]), scores[:, :nbest]

    width = translator.search.longest(tf.shape(inputs)[1])
    texts, scores = in_parts(
        search,
        [inputs] if terms is None else [inputs, translator.encode_terms(terms)],
        rows_within(_SEARCH_POSITIONS, width),
        [
            tf.TensorSpec([None, nbest], tf.string),
            tf.TensorSpec([None, nbest], tf.float32),
        ],
    )
    blank = is_blank(text)[:, None]
    nothing = tf.constant([[0.0] + [NO_HYPOTHESIS] * (nbest - 1)])
    return tf.where(blank, "", texts), tf.where(blank, nothing, scores)
