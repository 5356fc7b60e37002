"""Signatures of the SavedModel: graphs from text to text, or from ids to ids.

A server merges the requests of several clients. Each output therefore depends only on
its row, and no row can make other rows fail: long texts are cut, invalid UTF-8 is
decoded as U+FFFD, and large batches are computed in micro-batches. Only invalid ids
make a whole batch fail.
"""

from collections.abc import Callable, Sequence

import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.fast import int8_matmul
from t2t_repro.fast.quantization import find_codes, find_weight_bits
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables
from t2t_repro.serving.attention_signature import AttentionSignature
from t2t_repro.serving.text_signatures import TextSignatures
from t2t_repro.texts.sentences import SentenceSplitter
from t2t_repro.tokenizers.tokenizer import Tokenizer
from t2t_repro.translation.translator import MAX_INPUT_LENGTH, Translator

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
            and ``score`` are methods of `TextSignatures`, as is ``terms`` if
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
        signatures = TextSignatures(models, best, splitter)
        weight_bits = find_weight_bits(models[0])

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
        # A SavedModel contains the variables that are attributes of the module.
        self.weights = [
            each.value for model in models for each in named_variables(model).values()
        ]
        self.matrices = [code for each in models for code in find_codes(each)]


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
