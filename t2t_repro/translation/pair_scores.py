"""How probable a model finds translations that are given."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from t2t_repro.batches.packed_batch import BATCH_SIGNATURE
from t2t_repro.batches.pair_batches import pair_batches
from t2t_repro.models.log_probs import log_probs
from t2t_repro.models.transformer import Transformer
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.token_spans import spell_tokens
from t2t_repro.tokenizers.tokenizer import Tokenizer, cut_rows
from t2t_repro.translation.translator import MAX_INPUT_LENGTH

MAX_TARGET_LENGTH = 4096
"""Longer targets (subwords, EOS included) are refused, lest they exhaust memory."""

EOS_TEXT = "<EOS>"
"""What stands for the symbol that ends a sentence, which has no text of its own."""


class TokenScore(NamedTuple):
    """One symbol of a target.

    Attributes:
        text: what it adds to the text, spaces included; empty for a byte that does not
            complete its character; `EOS_TEXT` at the end.
        log_prob: nats.
    """

    text: str
    log_prob: float


class PairScore(NamedTuple):
    """How probable a target is, given its source.

    Attributes:
        log_prob: the sum over its symbols, nats.
        symbols: how many, EOS included.
        tokens: each symbol, if asked for.
        cut: whether the source was longer than a translator reads.
    """

    log_prob: float
    symbols: int
    tokens: tuple[TokenScore, ...]
    cut: bool

    @property
    def normalized(self) -> float:
        """The log probability per symbol, nats."""
        return self.log_prob / self.symbols


@dataclass
class CorpusScore:
    """The sums over pairs; `tokens` are symbols of targets, `cut` pairs."""

    pairs: int = 0
    tokens: int = 0
    log_prob: float = 0.0
    cut: int = 0

    def add(self, score: PairScore) -> None:
        """Counts one pair more."""
        self.pairs += 1
        self.tokens += score.symbols
        self.log_prob += score.log_prob
        self.cut += score.cut

    @property
    def perplexity(self) -> float:
        """The exponential of the mean loss per symbol in nats; 1 for no symbol."""
        try:
            return math.exp(-self.log_prob / max(self.tokens, 1))
        except OverflowError:
            return math.inf

    def to_dict(self) -> dict[str, Any]:
        """Returns the figures by name."""
        return {
            "pairs": self.pairs,
            "tokens": self.tokens,
            "log_prob": self.log_prob,
            "perplexity": self.perplexity,
        }

    def text(self) -> str:
        """Describes the score for people."""
        return (
            f"{self.pairs:,} pairs, {self.tokens:,} tokens, "
            f"perplexity {self.perplexity:.4f} per token"
        )


class PairScorer:
    """Scores given sentence pairs by teacher forcing.

    The sum over the ids of a hypothesis is what beam search has for it before it
    divides by the length penalty.

    Args:
        model: the model, already built.
        tokenizer: its vocabulary.
        max_input_length: sources are cut to as many subwords, as a translator does.

    Attributes:
        log_probs: the graph of `models.log_probs.log_probs`.
    """

    def __init__(
        self,
        model: Transformer,
        tokenizer: Tokenizer,
        max_input_length: int = MAX_INPUT_LENGTH,
    ) -> None:
        self.tokenizer = tokenizer
        self.max_input_length = max_input_length
        self.log_probs = tf.function(
            partial(log_probs, model), input_signature=BATCH_SIGNATURE, autograph=False
        )

    def score_pairs(
        self,
        pairs: Iterable[tuple[str, str]],
        *,
        per_token: bool = False,
        tokens_per_batch: int = 2048,
        window: int = 4096,
        progress: Callable[[int], object] | None = None,
    ) -> Iterator[PairScore]:
        """Yields a score for each pair, in order.

        Args:
            pairs: source and target, without line ends; an empty one is EOS alone.
            per_token: whether each symbol is wanted, too.
            tokens_per_batch: padded positions of either side that are scored at once.
            window: pairs in memory, sorted by length.
            progress: called with the number of pairs scored since the last call.

        Raises:
            UserError: a target is longer than `MAX_TARGET_LENGTH`.
        """
        reading, read = iter(pairs), 0
        while waiting := list(islice(reading, window)):
            sources, cut = self._encode_sources([source for source, _ in waiting])
            targets = self._encode_targets([target for _, target in waiting], read)
            done: list[PairScore | None] = [None] * len(waiting)
            for places, batch in pair_batches(sources, targets, tokens_per_batch):
                found = self.log_probs(batch["inputs"], batch["targets"]).numpy()
                chosen = [targets[n] for n in places]
                tokens = self._tokens(chosen, found) if per_token else [()] * len(found)
                # Summed in float64: the order of a batch must not show.
                sums = found.sum(axis=1, dtype=np.float64)
                for row, n in enumerate(places):
                    size = len(targets[n])
                    done[n] = PairScore(float(sums[row]), size, tokens[row], cut[n])
                if progress is not None:
                    progress(len(places))
            read += len(waiting)
            yield from (score for score in done if score is not None)

    def _encode_sources(self, lines: list[str]) -> tuple[list[list[int]], list[bool]]:
        """Encodes sources as a translator does, and says which were cut."""
        rows = self.tokenizer.encode(tf.constant(lines))
        cut = (rows.row_lengths() > self.max_input_length).numpy().tolist()
        return cut_rows(rows, self.max_input_length).to_list(), cut

    def _encode_targets(self, lines: list[str], before: int) -> list[list[int]]:
        """Encodes targets; `before` is how many pairs came before them."""
        encoded = self.tokenizer.target.encode(tf.constant(lines))
        rows: list[list[int]] = encoded.to_list()
        for number, row in enumerate(rows, before + 1):
            if len(row) > MAX_TARGET_LENGTH:
                raise UserError(
                    f"line {number:,} of the targets has {len(row):,} subwords, more "
                    f"than the {MAX_TARGET_LENGTH:,} that can be scored at once; cut "
                    "it into sentences"
                )
        return rows

    def _tokens(
        self, targets: list[list[int]], log_probs: np.ndarray
    ) -> list[tuple[TokenScore, ...]]:
        """Joins each symbol's text to its log probability, float32 (batch, target)."""
        side = self.tokenizer.target
        spelled = spell_tokens(side, [target[:-1] for target in targets])
        return [
            tuple(
                TokenScore(text, float(value))
                for text, value in zip(
                    [*found.pieces(), EOS_TEXT], row[: len(target)], strict=True
                )
            )
            for found, row, target in zip(spelled, log_probs, targets, strict=True)
        ]
