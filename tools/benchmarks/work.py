"""Workload of a training step: its sizes, matmuls and number of operations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from model_costs import TRAINING_PASSES

from t2t_repro import hparams


@dataclass(frozen=True)
class Work:
    """Workload of a training step on sentence pairs without padding.

    Attributes:
        size: Name of the hyper-parameter set.
        batch_size: Number of sentence pairs per step.
        length: Number of tokens per sentence, on both sides.
        d_model: Width of the residual stream.
        d_ff: Number of hidden units of the feed-forward networks.
        num_heads: Number of attention heads.
        num_layers: Number of layers of the encoder, and of the decoder.
        vocab_size: Number of subwords.
        precision: Precision of matmuls and activations.
        paper_dropout: Whether PyTorch applies dropout only where the paper does.
        xla: Whether XLA compiles the forward and backward pass.
        dropout: Dropout rate.
        label_smoothing: Probability taken from the correct token.
        packed_length: Number of positions per side of a row that holds several pairs;
            0: each pair has its own row.
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
    packed_length: int = 0

    @property
    def tokens(self) -> int:
        """Number of target tokens per step."""
        return self.batch_size * self.length

    @property
    def positions(self) -> int:
        """Number of target positions per step, padding included."""
        if not self.packed_length:
            return self.tokens
        pairs_per_row = self.packed_length // self.length
        return self.batch_size // pairs_per_row * self.packed_length


def work_of(size: str, batch_size: int, length: int, vocab_size: int) -> Work:
    """Returns the workload of a hyper-parameter set."""
    values = hparams.load(size)
    names = ("d_model", "d_ff", "num_heads", "num_layers")
    sizes = {name: getattr(values, name) for name in names}
    return Work(size, batch_size, length, vocab_size=vocab_size, **sizes)


@dataclass(frozen=True)
class Matmul:
    """Matmuls of one shape in the forward pass: (rows, inner) by (inner, columns).

    Attributes:
        count: Number of such matmuls per step, each with its own operands.
        copies: Batch size of the matmul; batch x heads in attention.
        rows: Number of rows of the left operand.
        inner: Number of columns of the left operand and of rows of the right operand.
        columns: Number of columns of the right operand.
    """

    count: int
    copies: int
    rows: int
    inner: int
    columns: int

    @property
    def flops(self) -> int:
        """Number of forward and backward multiplications and additions."""
        one = self.copies * self.rows * self.inner * self.columns
        return 2 * TRAINING_PASSES * self.count * one


SQUARE = [Matmul(1, 1, 2048, 2048, 2048)]
"""A large matmul, which reaches the machine's highest speed."""


def matmuls_of(work: Work) -> list[Matmul]:
    """Returns the matmuls of a step."""
    rows, length, d_model = work.tokens, work.length, work.d_model
    attentions = 3 * work.num_layers  # One per encoder layer, two per decoder layer.
    heads, depth = work.batch_size * work.num_heads, d_model // work.num_heads
    return [
        # Queries, keys, values and output.
        Matmul(4 * attentions, 1, rows, d_model, d_model),
        Matmul(attentions, heads, length, depth, length),  # Queries by keys.
        Matmul(attentions, heads, length, length, depth),  # Weights by values.
        Matmul(2 * work.num_layers, 1, rows, d_model, work.d_ff),
        Matmul(2 * work.num_layers, 1, rows, work.d_ff, d_model),
        Matmul(1, 1, rows, d_model, work.vocab_size),  # Logits.
    ]


def flops(matmuls: Iterable[Matmul]) -> int:
    """Returns the total number of operations, forward and backward."""
    return sum(matmul.flops for matmul in matmuls)
