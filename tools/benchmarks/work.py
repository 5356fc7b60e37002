"""Workload of a training step."""

from __future__ import annotations

from dataclasses import dataclass

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


def make_workload(size: str, batch_size: int, length: int, vocab_size: int) -> Work:
    """Returns the workload of a hyper-parameter set."""
    values = hparams.load(size)
    names = ("d_model", "d_ff", "num_heads", "num_layers")
    sizes = {name: getattr(values, name) for name in names}
    return Work(size, batch_size, length, vocab_size=vocab_size, **sizes)
