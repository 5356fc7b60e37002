r"""tensor2tensor's BLEU, as computed by t2t-bleu and approx_bleu.

Use it only to compare with figures printed by tensor2tensor; publish sacreBLEU
instead. Its tokens are nearly those of mteval-v14.pl (sacreBLEU's `intl`).

Source: tensor2tensor utils/bleu_hook.py:bleu_tokenize, compute_bleu, bleu_wrapper.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from itertools import count

import regex  # Installed with sacreBLEU.
from sacrebleu.metrics import BLEU

from t2t_repro.evaluation.bleu import check_line_counts

# T2T: its unescaped character class drops the backslash from the punctuation marks.
_MARK = r"[\p{P}--\\]"
_AFTER_NON_DIGIT = regex.compile(rf"(?V1)(\D)({_MARK})")
_BEFORE_NON_DIGIT = regex.compile(rf"(?V1)({_MARK})(\D)")
_SYMBOL = regex.compile(r"\p{S}")


def t2t_bleu(
    hypotheses: Sequence[str], references: Sequence[str], cased: bool = True
) -> float:
    """Computes the corpus BLEU (0 to 100) that t2t-bleu prints for two files.

    Args:
        hypotheses: Detokenized lines without line ends.
        references: Reference of each line.
        cased: Whether to compute `BLEU_cased`; otherwise, both sides are lowercased
            (`BLEU_uncased`).

    Raises:
        UserError: The lists are empty or of different lengths.
    """

    def tokens(lines: Sequence[str]) -> list[list[str]]:
        return [tokenize(line if cased else line.lower()) for line in lines]

    return 100 * corpus_bleu(tokens(references), tokens(hypotheses))


def tokenize(text: str) -> list[str]:
    r"""Splits a line at white space, symbols and most punctuation.

    A punctuation mark between two digits (`12,50`), or next to a digit at either end
    of the text, is not split off: the full stop after a year at the end of a sentence
    belongs to the year, as in mteval-v14.pl.
    """
    text = _AFTER_NON_DIGIT.sub(r"\1 \2 ", text)
    text = _BEFORE_NON_DIGIT.sub(r" \1 \2", text)
    return _SYMBOL.sub(r" \g<0> ", text).split()


def corpus_bleu(
    references: Sequence[Sequence[Hashable]],
    hypotheses: Sequence[Sequence[Hashable]],
) -> float:
    """Computes the BLEU (0 to 1) of sequences of words or ids.

    The k-th n-gram order without a match (k = 1, 2, ...) gets the precision
    2^-k / n, where n is its number of n-grams. Orders longer than all hypotheses are
    ignored. tensor2tensor rounds the result to float32.

    Args:
        references: Reference of each hypothesis.
        hypotheses: Sequences to score; the result is 0 if all of them are empty.

    Raises:
        UserError: The lists are empty or of different lengths.
    """
    check_line_counts(hypotheses, references)
    # Spaces separate the tokens, and sacreBLEU counts their n-grams.
    hypothesis_lines, reference_lines = (
        [" ".join(map(str, tokens)) for tokens in side]
        for side in (hypotheses, references)
    )
    metric = BLEU(tokenize="none", force=True)
    score = metric.corpus_score(hypothesis_lines, [reference_lines])
    if not score.sys_len:
        return 0.0
    log_precisions, unmatched = 0.0, count(1)
    for matched, possible in zip(score.counts, score.totals, strict=True):
        if possible:
            fraction = (matched or 2.0 ** -next(unmatched)) / possible
            log_precisions += math.log(fraction)
    return float(score.bp * math.exp(log_precisions / len(score.counts)))
