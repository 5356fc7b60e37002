"""The matrix products of a training step: the part of it that nothing can avoid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

TRAINING_PASSES = 3
"""Each product of the forward pass has two in the backward pass, as large as it."""

SQUARE = 2048
"""Rows and columns of the product that shows what the machine can do at best."""


@dataclass(frozen=True)
class Product:
    """Products of one shape in the forward pass: (rows, inner) by (inner, columns).

    Attributes:
        count: how many of them a step has, each with operands of its own.
        copies: matrices that are multiplied side by side; attention's: batch x heads.
        rows: of the left operand.
        inner: columns of the left operand, rows of the right one.
        columns: of the right operand.
    """

    count: int
    copies: int
    rows: int
    inner: int
    columns: int

    @property
    def flops(self) -> int:
        """Operations forward and backward, two for a multiplication and addition."""
        one = self.copies * self.rows * self.inner * self.columns
        return 2 * TRAINING_PASSES * self.count * one


def products_of_step(
    *,
    batch_size: int,
    length: int,
    d_model: int,
    d_ff: int,
    num_heads: int,
    num_layers: int,
    vocab_size: int,
) -> list[Product]:
    """Lists the products of a step on full sentences, both sides equally long.

    Args:
        batch_size: sentence pairs.
        length: positions of each side.
        d_model: channels.
        d_ff: hidden channels of the feed-forward network.
        num_heads: h; a head has d_model / h channels.
        num_layers: of the encoder, and of the decoder.
        vocab_size: V.
    """
    rows = batch_size * length
    attentions = 3 * num_layers  # One in an encoder layer, two in a decoder layer.
    heads, depth = batch_size * num_heads, d_model // num_heads
    return [
        # Queries, keys, values and output.
        Product(4 * attentions, 1, rows, d_model, d_model),
        Product(attentions, heads, length, depth, length),  # Queries by keys.
        Product(attentions, heads, length, length, depth),  # Weights by values.
        Product(2 * num_layers, 1, rows, d_model, d_ff),
        Product(2 * num_layers, 1, rows, d_ff, d_model),
        Product(1, 1, rows, d_model, vocab_size),  # Logits.
    ]


def square() -> list[Product]:
    """Returns one large product, for what the machine can do at best."""
    return [Product(1, 1, SQUARE, SQUARE, SQUARE)]


def flops(products: Sequence[Product]) -> int:
    """Adds up the operations, forward and backward."""
    return sum(product.flops for product in products)
