"""Replacement of unknown tokens in translations by words of the source.

The word is the source word aligned by attention (Luong et al. 2015, arXiv:1410.8206,
section 3.3, without their dictionary).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from t2t_repro.tokenizers.token_spans import CLOSING, OPENING, spell_tokens
from t2t_repro.tokenizers.tokenizer import EOS_ID, PAD_ID, Tokenizer

AlignTokens = Callable[[Sequence[str], Sequence[Sequence[int]]], list[list[str]]]


class UnknownWords:
    """Replaces each unknown token by its aligned source word.

    Several unknown tokens in a row that are aligned with one word are replaced once.

    Args:
        target: Tokenizer of the translations.
        align: Function that returns the source word aligned with each target token;
            see `Aligner.source_words`.
    """

    def __init__(self, target: Tokenizer, align: AlignTokens) -> None:
        self._target = target
        self._align = align

    def __call__(
        self,
        sources: Sequence[str],
        ids: npt.NDArray[np.integer],
        texts: Sequence[str],
    ) -> list[str]:
        """Returns the translations with their unknown tokens replaced.

        Args:
            sources: Source sentences.
            ids: Token ids of the hypotheses, int32 (rows, hypotheses, target),
                0-padded.
            texts: Text of each hypothesis, returned unchanged if all its tokens are
                known.
        """
        results = list(texts)
        tokens = {}
        for n, row in enumerate(ids.reshape(len(texts), -1)):
            if self._target.unknown_id in row:
                tokens[n] = [t for t in row.tolist() if t not in (PAD_ID, EOS_ID)]
        words = self._align(
            [sources[n // ids.shape[1]] for n in tokens],
            [[*row, EOS_ID] for row in tokens.values()],
        )
        spelled = spell_tokens(self._target, list(tokens.values()))
        for n, text, aligned in zip(tokens, spelled, words, strict=True):
            known = [token != self._target.unknown_id for token in tokens[n]]
            pieces = [re.sub(r"[\r\n]", " ", piece) for piece in text.pieces()]
            results[n] = _replace_unknown(known, pieces, aligned)
        return results


def _replace_unknown(known: list[bool], pieces: list[str], words: list[str]) -> str:
    """Joins the known pieces, and the words of unknown ones with spaces around them."""
    text, last = "", ""
    for is_known, piece, word in zip(known, pieces, words, strict=True):
        if not is_known and word != last:
            text = text.rstrip(" ")
            space = "" if not text or text[-1] in OPENING else " "
            text, last = f"{text}{space}{word}", word
        elif is_known and piece:
            if last and (piece := piece.lstrip(" ")) and piece[0] not in CLOSING:
                piece = f" {piece}"
            text, last = text + piece, ""
    return text
