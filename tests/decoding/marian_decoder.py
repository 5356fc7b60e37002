"""Plain Transformer with the weights of a Marian model, used as a search's decoder.

The state contains the inputs of each layer, whose keys and values are computed again in
every step. Ids are in this project's order: PAD 0, EOS 1, then the order of Marian's
vocabulary.
"""

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import yaml

from t2t_repro.decoding.decoder import State
from t2t_repro.tokenizers.marian_tokenizer import SPECIAL_PIECES, MarianTokenizer

ACTIVATIONS = {
    "swish": tf.nn.silu,
    "relu": tf.nn.relu,
    "gelu": lambda x: tf.nn.gelu(x, approximate=False),
}


class MarianDecoder:
    """Post-norm Transformer with biases.

    Args:
        folder: Directory with Marian's files of a model.
        activation: Activation of the feed-forward layers, a key of `ACTIVATIONS`.
        program: Program whose position encoding and epsilon are used, "marian" or
            "transformers".
    """

    def __init__(self, folder: Path, activation: str, program: str = "marian") -> None:
        (path,) = folder.glob("*.npz")
        with np.load(path) as file:
            self._weights = {name: tf.constant(file[name]) for name in file.files}
        files = sorted(folder.glob("*vocab.yml"))
        self.orders = [_order(file) for file in files]
        self.tokenizer = MarianTokenizer.from_pieces(
            (folder / "source.spm").read_bytes(),
            (folder / "target.spm").read_bytes(),
            *(order.pieces for order in self.orders),
        )
        shared = len(self.orders) == 1
        names = ("Wemb", "Wemb") if shared else ("encoder_Wemb", "decoder_Wemb")
        self._tables = [
            _with_padding(tf.gather(self._weights[name], order.theirs))
            for name, order in zip(
                names, (self.orders[0], self.orders[-1]), strict=True
            )
        ]
        bias = tf.gather(
            self._weights["decoder_ff_logit_out_b"][0], self.orders[-1].theirs
        )
        self._bias = tf.concat([[float("-inf")], bias], axis=0)
        self._activation = ACTIVATIONS[activation]
        self._epsilon = {"marian": 1e-9, "transformers": 1e-5}[program]
        self._heads = {64: 4, 48: 3, 40: 2}[self._tables[0].shape[1]]
        self._program = program

    def start(self, inputs: tf.Tensor, beam: int) -> State:
        mask = inputs > 0
        x = self._embedded(0, inputs, tf.range(tf.shape(inputs)[1]))
        layers = self._layers("encoder")
        for layer in layers:
            x = self._attend(f"{layer}_self", x, x, mask[:, None, None])
            x = self._feed_forward(layer, x)
        empty = tf.zeros([tf.shape(inputs)[0], beam, 0, x.shape[2]])
        past = dict.fromkeys(self._layers("decoder"), empty)
        return {"memory": x, "mask": mask[:, None, None], **past}

    def step(
        self, ids: tf.Tensor, index: tf.Tensor, state: State
    ) -> tuple[tf.Tensor, State]:
        """Computes the logits of the next tokens."""
        rows, beam = tf.unstack(tf.shape(ids))
        x = self._embedded(1, ids, index)
        depth = x.shape[2]
        for layer in self._layers("decoder"):
            past = tf.concat([state[layer], x[:, :, None]], axis=2)
            state = state | {layer: past}
            # In self-attention, each hypothesis is a row; in cross-attention, a query.
            past = tf.reshape(past, [rows * beam, index + 1, depth])
            x = tf.reshape(x, [rows * beam, 1, depth])
            x = self._attend(f"{layer}_self", x, past, True)
            x = tf.reshape(x, [rows, beam, depth])
            x = self._attend(f"{layer}_context", x, state["memory"], state["mask"])
            x = self._feed_forward(layer, x)
        logits = tf.einsum("rbd,vd->rbv", x, self._tables[1]) + self._bias
        return logits, state

    def select_beams(self, state: State, parents: tf.Tensor) -> State:
        return state | {
            layer: tf.gather(state[layer], parents, batch_dims=1)
            for layer in self._layers("decoder")
        }

    def select_sentences(self, state: State, keep: tf.Tensor) -> State:
        return {name: tf.gather(value, keep) for name, value in state.items()}

    def _layers(self, side: str) -> list[str]:
        """Returns the name prefixes of a side's layers, in order."""
        prefixes = {
            name.rsplit("_ffn_W1", 1)[0]
            for name in self._weights
            if name.startswith(f"{side}_l") and name.endswith("_ffn_W1")
        }
        return sorted(prefixes)

    def _embedded(self, side: int, ids: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
        table = self._tables[side]
        depth = table.shape[1]
        half = np.arange(depth // 2)
        exponents = half / (depth // 2 - 1)
        if self._program == "transformers":
            exponents = 2 * half / depth
        places = tf.cast(places, tf.float64)[..., None]
        angles = places * tf.constant(10_000.0**-exponents)
        signal = tf.concat([tf.sin(angles), tf.cos(angles)], axis=-1)
        return tf.gather(table, ids) * depth**0.5 + tf.cast(signal, tf.float32)

    def _attend(
        self, name: str, x: tf.Tensor, memory: tf.Tensor, mask: tf.Tensor | bool
    ) -> tf.Tensor:
        """Computes residual attention; mask: bool (rows, heads, queries, keys)."""

        def heads(letter: str, values: tf.Tensor) -> tf.Tensor:
            projected = self._dense(f"{name}_W{letter}", f"{name}_b{letter}", values)
            rows, _, depth = projected.shape
            rows = tf.shape(projected)[0] if rows is None else rows
            length = tf.shape(projected)[1]
            shape = [rows, length, self._heads, depth // self._heads]
            return tf.transpose(tf.reshape(projected, shape), [0, 2, 1, 3])

        query, key, value = heads("q", x), heads("k", memory), heads("v", memory)
        weights = tf.matmul(query, key, transpose_b=True) / query.shape[-1] ** 0.5
        weights = tf.nn.softmax(tf.where(mask, weights, -1e9))
        mixed = tf.transpose(tf.matmul(weights, value), [0, 2, 1, 3])
        mixed = tf.reshape(mixed, tf.shape(x))
        new = self._dense(f"{name}_Wo", f"{name}_bo", mixed)
        return self._norm(f"{name}_Wo", x + new)

    def _feed_forward(self, layer: str, x: tf.Tensor) -> tf.Tensor:
        inner = self._dense(f"{layer}_ffn_W1", f"{layer}_ffn_b1", x)
        new = self._dense(f"{layer}_ffn_W2", f"{layer}_ffn_b2", self._activation(inner))
        return self._norm(f"{layer}_ffn_ffn", x + new)

    def _dense(self, kernel: str, bias: str, x: tf.Tensor) -> tf.Tensor:
        return tf.matmul(x, self._weights[kernel]) + self._weights[bias]

    def _norm(self, name: str, x: tf.Tensor) -> tf.Tensor:
        mean, variance = tf.nn.moments(x, axes=[-1], keepdims=True)
        scale, bias = (
            self._weights[f"{name}_ln_scale"],
            self._weights[f"{name}_ln_bias"],
        )
        return (x - mean) / tf.sqrt(variance + self._epsilon) * scale + bias


class _Order:
    """Mapping between our ids and Marian's for one vocabulary.

    Attributes:
        pieces: Pieces by our ids.
        theirs: Marian's ids by our ids, from our id 1 (EOS) on.
        ours: Our ids by Marian's ids.
    """

    def __init__(self, table: dict[str, int]) -> None:
        pad, eos = SPECIAL_PIECES
        names = [eos, *(p for p in sorted(table, key=lambda p: table[p]) if p != eos)]
        self.pieces = [pad, *names]
        self.theirs = [table[piece] for piece in names]
        self.ours = {number: n for n, number in enumerate(self.theirs, 1)}


def _order(path: Path) -> _Order:
    """Reads a vocabulary; BaseLoader reads `no` and `1` as text."""
    entries: dict[str, Any] = yaml.load(path.read_text("utf-8"), yaml.BaseLoader)
    return _Order({piece: int(number) for piece, number in entries.items()})


def _with_padding(table: tf.Tensor) -> tf.Tensor:
    """Prepends a row of zeros, for PAD, to a table."""
    return tf.concat([tf.zeros_like(table[:1]), table], axis=0)
