"""Export to LiteRT (TensorFlow Lite), for phones and other small devices.

The model has two signatures: ``encode`` runs the encoder for one sentence, and ``step``
computes the probabilities of the next token of every hypothesis. `litert_client.py`,
which the export contains, searches with them. Only builtin operations are used, and all
shapes are constant, because LiteRT's optimized implementation (XNNPACK) cannot run the
model with variable shapes.
"""

import json
import shutil
import tempfile
from pathlib import Path

import keras
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.hparams.supported import Supported
from t2t_repro.models.transformer import Transformer
from t2t_repro.serving import litert_client
from t2t_repro.tokenizers.tokenizer import PAD_ID, Tokenizer

MAX_INPUT_LENGTH = 128
"""Default number of subwords per sentence; every step attends to all positions."""

SUPPORTED = Supported(
    "the LiteRT export",
    "export a saved_model",
    (
        *("tokenizer", "vocab_size", "share_vocab", "vocab_divisor"),
        *("share_embeddings", "tie_target"),
        *("d_model", "d_ff", "decoder_d_ff", "num_layers", "num_decoder_layers"),
        *("num_heads", "d_k", "d_v", "activation", "attention_bias", "softmax_bias"),
        *("norm", "norm_epsilon", "position", "max_position", "start_symbol"),
        *("source_end", "scale_embeddings", "target_space_embedding"),
        *("target_space_id", "beam_size", "alpha", "word_penalty", "allow_unknown"),
        *("decode_extra_length", "decode_length_factor"),
    ),
    {"search": ("t2t", "marian")},
)
"""Hyper-parameters of the signatures and of the client."""


def write_litert(
    model: Transformer,
    tokenizer: Tokenizer,
    search: DecodingConfig,
    folder: Path,
    precision: str = "float32",
    max_input_length: int = MAX_INPUT_LENGTH,
) -> None:
    """Writes the model, the settings of the search, the vocabulary and the client.

    The optimized implementations must not be installed (`fast.install`), because LiteRT
    lacks their operations.

    Args:
        model: Built model.
        tokenizer: Tokenizer of the model.
        search: Settings of the search.
        folder: Empty folder for the export.
        precision: "float32", or "int8" for LiteRT's dynamic-range quantization: int8
            weights, with inputs that are quantized while the model runs.
        max_input_length: Number of subwords to which texts are cut, EOS included.

    Raises:
        UserError: LiteRT's client does not support the model or its search.
    """
    SUPPORTED.check_model(model, search=search.algorithm)
    contents = convert(LiteRTSteps(model, search, max_input_length), precision)
    (folder / litert_client.MODEL).write_bytes(contents)
    settings = {
        "algorithm": search.algorithm,
        "alpha": search.alpha,
        "word_penalty": search.word_penalty,
        "never": sorted({PAD_ID, *search.never}),
        # Maximum length of the output by the length of the input.
        "limits": [search.longest(n) for n in range(max_input_length + 1)],
        # Vocabularies, and shapes of the inputs and of the log probabilities.
        "sizes": [
            *(tokenizer.vocab_size, tokenizer.target.vocab_size),
            *(1, max_input_length),
            *(search.beam_size, model.vocab_size),
        ],
    }
    text = json.dumps(settings) + "\n"
    (folder / litert_client.SETTINGS).write_text(text, encoding="utf-8")
    tokenizer.save_for_clients(folder)
    shutil.copy(litert_client.__file__, folder)


def convert(steps: "LiteRTSteps", precision: str) -> bytes:
    """Returns LiteRT's file of the signatures, with one copy of the float32 weights."""
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(steps, folder, signatures=steps.functions)
        converter = tf.lite.TFLiteConverter.from_saved_model(
            folder, signature_keys=[*steps.functions]
        )
        if precision == "int8":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        return bytes(converter.convert())


class LiteRTSteps(tf.Module):
    """Signatures for a search outside of the model.

    Args:
        model: Built model with absolute positions.
        search: Settings of the search; they determine the sizes.
        max_input_length: Length of the source, S.

    Attributes:
        functions: ``encode`` and ``step``.
    """

    def __init__(
        self, model: Transformer, search: DecodingConfig, max_input_length: int
    ) -> None:
        super().__init__()
        self._beam, self._width = search.beam_size, search.longest(max_input_length)
        self._layers = model.decoder.layers_in_order()
        self._model = model
        self.weights = [variable.value for variable in model.variables]
        first, source = self._layers[0], max_input_length
        self_keys, cross_keys = (
            (len(self._layers), *rows, attention.num_heads, length)
            for rows, attention, length in (
                ((self._beam,), first.self_attention, self._width),
                ((), first.cross_attention, source),
            )
        )
        floats = {
            "self_keys": (*self_keys, first.self_attention.d_k),
            "self_values": (*self_keys, first.self_attention.d_v),
            "memory_keys": (*cross_keys, first.cross_attention.d_k),
            "memory_values": (*cross_keys, first.cross_attention.d_v),
        }
        self.functions = {
            "encode": tf.function(
                self.encode,
                [tf.TensorSpec([1, source], tf.int32, "inputs")],
                autograph=False,
            ),
            "step": tf.function(
                self.step,
                [
                    tf.TensorSpec([self._beam], tf.int32, "ids"),
                    tf.TensorSpec([1], tf.int32, "index"),
                    *(tf.TensorSpec(s, tf.float32, n) for n, s in floats.items()),
                    tf.TensorSpec([1, 1, 1, source], tf.bool, "memory_mask"),
                ],
                autograph=False,
            ),
        }

    def encode(self, inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        """Runs the encoder.

        Args:
            inputs: int32 (1, S), the ids of a sentence with EOS, 0-padded.

        Returns:
            The inputs ``memory_keys``, ``memory_values`` and ``memory_mask`` of `step`.
        """
        x, mask = self._model.encode(inputs)
        memory = [each.cross_attention.project_memory(x) for each in self._layers]
        keys, values = (tf.concat(each, axis=0) for each in zip(*memory, strict=True))
        return {
            "memory_keys": keys,
            "memory_values": values,
            "memory_mask": mask[:, None],
        }

    def step(
        self,
        ids: tf.Tensor,
        index: tf.Tensor,
        self_keys: tf.Tensor,
        self_values: tf.Tensor,
        memory_keys: tf.Tensor,
        memory_values: tf.Tensor,
        memory_mask: tf.Tensor,
    ) -> dict[str, tf.Tensor]:
        """Computes the log probabilities of the next tokens.

        Args:
            ids: int32 (beam,), the last tokens; 0 at the first step.
            index: int32 (1,), step number, from 0.
            self_keys: float32 (layers, beam, heads, steps, d_k), from the last step,
                reordered with the hypotheses; zeros at the first step.
            self_values: float32 (layers, beam, heads, steps, d_v), likewise.
            memory_keys: float32 (layers, heads, S, d_k), from `encode`.
            memory_values: float32 (layers, heads, S, d_v), from `encode`.
            memory_mask: bool (1, 1, 1, S), true at visible source positions.

        Returns:
            ``log_probs``, float32 (beam, V), ``new_self_keys`` and ``new_self_values``.
        """
        slots = tf.range(self._width)
        is_new, is_visible = tf.equal(slots, index), slots <= index
        x = self._model.step_input(ids[:, None], index)  # (beam, 1, d_model)
        keys, values = [], []
        for number, layer in enumerate(self._layers):
            past = self_keys[number], self_values[number]
            # OpenVINO misreads an index and a new axis in one slice.
            memory = memory_keys[number][None], memory_values[number][None]
            x, key, value = self._layer_step(
                layer, x, past, (is_new, is_visible), (*memory, memory_mask)
            )
            keys.append(key)
            values.append(value)
        logits = self._model.logits(self._model.decoder.finish(x))[:, 0]
        return {
            "log_probs": tf.nn.log_softmax(logits),
            "new_self_keys": tf.stack(keys),
            "new_self_values": tf.stack(values),
        }

    def _layer_step(
        self,
        layer: keras.layers.Layer,
        x: tf.Tensor,
        past: tuple[tf.Tensor, tf.Tensor],
        masks: tuple[tf.Tensor, tf.Tensor],
        memory: tuple[tf.Tensor, tf.Tensor, tf.Tensor],
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Applies a layer to one token per hypothesis.

        Args:
            layer: Decoder layer.
            x: float32 (beam, 1, d_model).
            past: Keys and values of earlier steps, float32 (beam, heads, steps, d).
            masks: bool (steps,), whether a step is the current one, and whether it is
                visible.
            memory: Keys, values and mask of the source.

        Returns:
            The output, float32 (beam, 1, d_model), and the new keys and values.
        """
        own, cross = layer.self_attention, layer.cross_attention
        is_new, is_visible = masks
        keys, values = past

        def self_attend(y: tf.Tensor) -> tf.Tensor:
            nonlocal keys, values
            key, value = own.project_memory(y)
            keys = tf.where(is_new[:, None], key, keys)
            values = tf.where(is_new[:, None], value, values)
            mask = is_visible[None, None, None]
            return own.attend(own.project_query(y), keys, values, mask)

        def cross_attend(y: tf.Tensor) -> tf.Tensor:
            # The hypotheses take the place of target positions.
            y = tf.reshape(y, [1, self._beam, y.shape[2]])
            y = cross.attend(cross.project_query(y), *memory)
            return tf.reshape(y, [self._beam, 1, y.shape[2]])

        x = layer.apply_sublayers(x, self_attend, cross_attend)
        return x, keys, values
