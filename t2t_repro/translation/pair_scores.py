"""Scores of given translations: their log probability under a model."""

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
"""Maximum length of a target in tokens, EOS included, which limits memory."""

EOS_TEXT = "<EOS>"
"""Text of the EOS token in `TokenScore`."""


class TokenScore(NamedTuple):
    """Score of one token of a target.

    Attributes:
        text: Text of the token, spaces included; `EOS_TEXT` for EOS. Empty for a byte
            that does not complete its character.
        log_prob: Log probability in nats.
    """

    text: str
    log_prob: float


class PairScore(NamedTuple):
    """Score of a target, given its source.

    Attributes:
        log_prob: Log probability in nats, the sum over the tokens.
        symbols: Number of tokens, EOS included.
        tokens: Scores of the tokens; empty unless requested.
        cut: Whether the source was cut to the maximum input length.
    """

    log_prob: float
    symbols: int
    tokens: tuple[TokenScore, ...]
    cut: bool

    @property
    def normalized(self) -> float:
        """Log probability per token, in nats."""
        return self.log_prob / self.symbols


@dataclass
class CorpusScore:
    """Sums over the pairs of a corpus.

    Attributes:
        pairs: Number of pairs.
        tokens: Number of target tokens, EOS included.
        log_prob: Log probability of all targets, in nats.
        cut: Number of pairs whose source was cut.
    """

    pairs: int = 0
    tokens: int = 0
    log_prob: float = 0.0
    cut: int = 0

    def add(self, score: PairScore) -> None:
        """Adds the score of a pair."""
        self.pairs += 1
        self.tokens += score.symbols
        self.log_prob += score.log_prob
        self.cut += score.cut

    @property
    def perplexity(self) -> float:
        """Exponential of the mean negative log probability per token; 1 if empty."""
        try:
            return math.exp(-self.log_prob / max(self.tokens, 1))
        except OverflowError:
            return math.inf

    def to_dict(self) -> dict[str, Any]:
        """Returns the sums and the perplexity by name."""
        return {
            "pairs": self.pairs,
            "tokens": self.tokens,
            "log_prob": self.log_prob,
            "perplexity": self.perplexity,
        }

    def text(self) -> str:
        """Returns a one-line summary."""
        return (
            f"{self.pairs:,} pairs, {self.tokens:,} tokens, "
            f"perplexity {self.perplexity:.4f} per token"
        )


class PairScorer:
    """Scores given sentence pairs by teacher forcing.

    The score of a hypothesis equals its log probability in beam search, before the
    division by the length penalty.

    Args:
        model: Built model.
        tokenizer: Tokenizer of the model.
        max_input_length: Number of subwords to which sources are cut, EOS included.

    Attributes:
        log_probs: `models.log_probs.log_probs` as a `tf.function`.
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
            pairs: Source and target sentences without line ends. An empty sentence is
                encoded as EOS.
            per_token: Whether to return the score of each token.
            tokens_per_batch: Maximum number of positions on each side of a batch,
                padding included.
            window: Number of pairs that are held in memory and sorted by length.
            progress: Callback whose argument is the number of pairs scored since the
                last call.

        Raises:
            UserError: A target is longer than `MAX_TARGET_LENGTH`.
        """
        pairs, num_scored = iter(pairs), 0
        while part := list(islice(pairs, window)):
            texts = [source for source, _ in part]
            self.tokenizer.print_notes(texts)
            ids = self.tokenizer.encode(tf.constant(texts))
            cut = (ids.row_lengths() > self.max_input_length).numpy().tolist()
            sources = cut_rows(ids, self.max_input_length).to_list()
            targets = self._encode_targets([target for _, target in part], num_scored)
            scores: list[PairScore | None] = [None] * len(part)
            for indices, batch in pair_batches(sources, targets, tokens_per_batch):
                logs = self.log_probs(batch["inputs"], batch["targets"]).numpy()
                rows = [targets[n] for n in indices]
                tokens = self._tokens(rows, logs) if per_token else [()] * len(logs)
                # A sum in float64 hardly depends on the padding of the batch.
                sums = logs.sum(axis=1, dtype=np.float64)
                for row, n in enumerate(indices):
                    size = len(targets[n])
                    scores[n] = PairScore(float(sums[row]), size, tokens[row], cut[n])
                if progress is not None:
                    progress(len(indices))
            num_scored += len(part)
            yield from (score for score in scores if score is not None)

    def _encode_targets(self, lines: list[str], offset: int) -> list[list[int]]:
        """Encodes targets; `offset` is the number of preceding pairs."""
        encoded = self.tokenizer.target.encode(tf.constant(lines))
        rows: list[list[int]] = encoded.to_list()
        for number, row in enumerate(rows, offset + 1):
            if len(row) > MAX_TARGET_LENGTH:
                raise UserError(
                    f"line {number:,} of the targets has {len(row):,} subwords, the "
                    f"maximum is {MAX_TARGET_LENGTH:,}; split it into sentences"
                )
        return rows

    def _tokens(
        self, targets: list[list[int]], log_probs: np.ndarray
    ) -> list[tuple[TokenScore, ...]]:
        """Returns the scores of all tokens; `log_probs` is float32 (batch, target)."""
        tokenizer = self.tokenizer.target
        spelled = spell_tokens(tokenizer, [target[:-1] for target in targets])
        return [
            tuple(
                TokenScore(text, float(value))
                for text, value in zip(
                    [*spelling.pieces(), EOS_TEXT], row[: len(target)], strict=True
                )
            )
            for spelling, row, target in zip(spelled, log_probs, targets, strict=True)
        ]
