r"""tensor2tensor's BLEU, as computed by t2t-bleu and approx_bleu.

Use it only to compare with figures printed by tensor2tensor; publish sacreBLEU
instead. Its tokens are nearly those of mteval-v14.pl (sacreBLEU's `intl`), and it
smooths the precision of n-gram orders without a match.

Source: tensor2tensor utils/bleu_hook.py:bleu_tokenize, compute_bleu, bleu_wrapper.
"""

from __future__ import annotations

import functools
import math
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Hashable, Sequence

from t2t_repro.evaluation.bleu import check_line_counts

MAX_ORDER = 4  # Maximum n-gram length.


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
    tokens = [
        [tokenize(line if cased else line.lower()) for line in lines]
        for lines in (references, hypotheses)
    ]
    return 100 * corpus_bleu(tokens[0], tokens[1])


def tokenize(text: str) -> list[str]:
    r"""Splits a line at white space, symbols and most punctuation.

    A punctuation mark between two digits (`12,50`), or next to a digit at either end
    of the text, is not split off: the full stop after a year at the end of a sentence
    belongs to the year, as in mteval-v14.pl.
    """
    after, before, symbol = _patterns()
    text = after.sub(r"\1 \2 ", text)
    text = before.sub(r" \1 \2", text)
    return symbol.sub(r" \g<0> ", text).split()


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
    orders = range(1, MAX_ORDER + 1)
    matched, possible = Counter[int](), Counter[int]()
    for reference, hypothesis in zip(references, hypotheses, strict=True):
        for order in orders:
            ngrams = _ngrams(hypothesis, order)
            possible[order] += ngrams.total()
            matched[order] += (ngrams & _ngrams(reference, order)).total()
    reference_length = sum(map(len, references))
    hypothesis_length = possible[1]
    if not hypothesis_length:
        return 0.0

    log_precisions, unmatched = 0.0, 0
    for order in orders:
        if matched[order]:
            log_precisions += math.log(matched[order] / possible[order])
        elif possible[order]:
            unmatched += 1
            log_precisions -= math.log(2**unmatched * possible[order])
    brevity_penalty = min(0.0, 1 - reference_length / hypothesis_length)
    return math.exp(log_precisions / MAX_ORDER + brevity_penalty)


def _ngrams(sequence: Sequence[Hashable], order: int) -> Counter[tuple[Hashable, ...]]:
    """Counts the n-grams of one order."""
    shifted = (sequence[start:] for start in range(order))
    return Counter(zip(*shifted, strict=False))


@functools.cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Compiles the patterns of `tokenize` on first use, because it takes 0.2 s.

    They match a mark after a non-digit, a mark before a non-digit, and a symbol. Marks
    are the characters of the Unicode categories P*, symbols those of S*, according to
    the running Python, as in tensor2tensor.
    """
    marks, symbols = [], []
    for character in map(chr, range(sys.maxunicode + 1)):
        match unicodedata.category(character)[0]:
            case "P":
                marks.append(character)
            case "S":
                symbols.append(character)
    # T2T: its unescaped character class drops the backslash from the marks.
    marks.remove("\\")
    mark, symbol = (f"[{re.escape(''.join(chars))}]" for chars in (marks, symbols))
    return (
        re.compile(rf"(\D)({mark})"),
        re.compile(rf"({mark})(\D)"),
        re.compile(symbol),
    )
