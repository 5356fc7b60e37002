"""The work of a training step: its sizes, and the products that nothing can avoid."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from model_costs import TRAINING_PASSES

from t2t_repro import hparams


@dataclass(frozen=True)
class Work:
    """The work of a program: a step on full sentences, both sides equally long.

    `length` is the positions of each side, all of them symbols; `num_layers` is of the
    encoder, and of the decoder; `precision` is of products and activations;
    `paper_dropout` is for PyTorch: dropout only where the paper has it. `xla` compiles
    forward and backward.
    """

    size: str
    batch_size: int
    length: int
    d_model: int
    d_ff: int
    num_heads: int
    num_layers: int
    vocab_size: int
    precision: str = "float32"
    paper_dropout: bool = False
    xla: bool = False
    dropout: float = 0.1
    label_smoothing: float = 0.1

    @property
    def tokens(self) -> int:
        """Target tokens of a step."""
        return self.batch_size * self.length


def work_of(size: str, batch_size: int, length: int, vocab_size: int) -> Work:
    """Returns the work of a hyper-parameter set."""
    chosen = hparams.load(size)
    names = ("d_model", "d_ff", "num_heads", "num_layers")
    sizes = {name: getattr(chosen, name) for name in names}
    return Work(size, batch_size, length, vocab_size=vocab_size, **sizes)


@dataclass(frozen=True)
class Product:
    """Products of one shape in the forward pass: (rows, inner) by (inner, columns).

    Attributes:
        count: number of such products in a step, each with its own operands.
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


SQUARE = [Product(1, 1, 2048, 2048, 2048)]
"""One large product: the best that the machine reaches."""


def products_of(work: Work) -> list[Product]:
    """Lists the products of a step."""
    rows, length, d_model = work.tokens, work.length, work.d_model
    attentions = 3 * work.num_layers  # One in an encoder layer, two in a decoder layer.
    heads, depth = work.batch_size * work.num_heads, d_model // work.num_heads
    return [
        # Queries, keys, values and output.
        Product(4 * attentions, 1, rows, d_model, d_model),
        Product(attentions, heads, length, depth, length),  # Queries by keys.
        Product(attentions, heads, length, length, depth),  # Weights by values.
        Product(2 * work.num_layers, 1, rows, d_model, work.d_ff),
        Product(2 * work.num_layers, 1, rows, work.d_ff, d_model),
        Product(1, 1, rows, d_model, work.vocab_size),  # Logits.
    ]


def flops(products: Iterable[Product]) -> int:
    """Adds up the operations, forward and backward."""
    return sum(product.flops for product in products)
