r"""tensor2tensor's own BLEU: what t2t-bleu prints, and approx_bleu's arithmetic.

It stands beside sacreBLEU only to compare with figures that tensor2tensor printed.
Tokens are nearly those of mteval-v14.pl (sacreBLEU's `intl`), and an order without
a match counts half of the previous such order's, not nothing. Do not publish it.

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

MAX_ORDER = 4  # The longest n-grams.


def t2t_bleu(
    hypotheses: Sequence[str], references: Sequence[str], cased: bool = True
) -> float:
    """Computes the corpus BLEU, 0 to 100, that t2t-bleu prints for two files.

    Lines are detokenized, without line ends. `cased` gives `BLEU_cased`, else both
    sides are lowercased first (`BLEU_uncased`). Raises UserError if there are no lines,
    or the numbers of lines differ.
    """
    tokens = [
        [tokenize(line if cased else line.lower()) for line in lines]
        for lines in (references, hypotheses)
    ]
    return 100 * corpus_bleu(tokens[0], tokens[1])


def tokenize(text: str) -> list[str]:
    r"""Cuts a line at white space, at symbols and at most punctuation.

    A punctuation mark stays where it is between two decimal digits (`12,50`), and at
    either end of the text beside a digit: the full stop after a year that ends a
    sentence is part of the year, as in mteval-v14.pl.
    """
    after, before, symbol = _cuts()
    text = after.sub(r"\1 \2 ", text)
    text = before.sub(r" \1 \2", text)
    return symbol.sub(r" \g<0> ", text).split()


def corpus_bleu(
    references: Sequence[Sequence[Hashable]],
    hypotheses: Sequence[Sequence[Hashable]],
) -> float:
    """Computes BLEU, 0 to 1, of sequences of words or ids, one reference each.

    The k-th order, counted from 1, that has n-grams but not one match gets the
    precision 2^-k / n for its n n-grams. An order for which every hypothesis is too
    short is passed over, as if its precision were 1. If all hypotheses are empty it is
    0. tensor2tensor rounds it to float32. Raises UserError if there are no sequences,
    or their numbers differ.
    """
    check_line_counts(hypotheses, references)
    orders = range(1, MAX_ORDER + 1)
    matched, possible = Counter[int](), Counter[int]()
    for reference, hypothesis in zip(references, hypotheses, strict=True):
        for order in orders:
            found = _ngrams(hypothesis, order)
            possible[order] += found.total()
            matched[order] += (found & _ngrams(reference, order)).total()
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
def _cuts() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Compiles what `tokenize` cuts at, when it is first needed (a fifth of a second).

    They are a mark and what stands before it, a mark and what stands after it, a
    symbol. Marks are the Unicode categories P*, symbols S*, by the running Python's
    tables, as in tensor2tensor.
    """
    marks, symbols = [], []
    for character in map(chr, range(sys.maxunicode + 1)):
        match unicodedata.category(character)[0]:
            case "P":
                marks.append(character)
            case "S":
                symbols.append(character)
    # T2T: its own pattern loses the backslash among the marks to the bracket after it.
    marks.remove("\\")
    mark, symbol = (f"[{re.escape(''.join(chars))}]" for chars in (marks, symbols))
    return (
        re.compile(rf"(\D)({mark})"),
        re.compile(rf"({mark})(\D)"),
        re.compile(symbol),
    )
