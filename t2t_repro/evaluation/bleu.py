"""BLEU twice: the comparable figure and the paper's own.

`sacre_bleu` is the figure to publish: sacreBLEU tokenizes the plain text itself
(Post 2018, "A Call for Clarity in Reporting BLEU Scores"). `paper_bleu` is what
stands in the paper's Table 2: BLEU of Moses tokens with German compounds split at
their hyphens, as tensor2tensor/utils/get_ende_bleu.sh has it. It differs, mostly
upwards (about 0.7 on newstest2014), so the two must never share a column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version

from sacrebleu.metrics import BLEU
from sacrebleu.metrics.bleu import BLEUScore

from t2t_repro.evaluation.newstest2014 import with_ascii_quotes
from t2t_repro.system.errors import UserError

# Perl leaves `aa-b-c` half split (the match of `a-b` consumes the b), so do we.
_HYPHEN_IN_WORD = re.compile(r"(\S)-(\S)", re.ASCII)


@dataclass(frozen=True)
class BleuScore:
    """A corpus BLEU and what is needed to reproduce it."""

    bleu: BLEUScore  # sacreBLEU's, with precisions, brevity penalty and lengths.
    signature: str  # How it was computed, in sacreBLEU's key:value form.
    # By `paper_bleu`, of newstest2014 only: the score against the official reference.
    original_quotes: BleuScore | None = None

    @property
    def score(self) -> float:
        """BLEU in points, 0 to 100."""
        return self.bleu.score


def sacre_bleu(
    hypotheses: Sequence[str],
    *references: Sequence[str],
    tokenize: str = "13a",
    smooth_method: str = "exp",
) -> BleuScore:
    """Computes the cased corpus BLEU of detokenized text with sacreBLEU.

    `tokenize` is "13a", "intl", "none", ...; `smooth_method` "exp" or "none". No lines,
    or sides of different length, are a UserError.
    """
    for lines in references:
        check_line_counts(hypotheses, lines)
    metric = BLEU(tokenize=tokenize, smooth_method=smooth_method, force=True)
    result = metric.corpus_score(hypotheses, references)
    return BleuScore(result, str(metric.get_signature()))


def multi_bleu(hypotheses: Sequence[str], *references: Sequence[str]) -> BleuScore:
    """Computes BLEU of tokenized text as Moses' multi-bleu.perl does.

    Tokens are what white space separates; nothing is lowercased or smoothed, so a
    corpus without one matching 4-gram scores 0. Raises as `sacre_bleu`.
    """
    return sacre_bleu(hypotheses, *references, tokenize="none", smooth_method="none")


def paper_bleu(
    hypotheses: Sequence[str],
    references: Sequence[str],
    target_lang: str,
    more_references: Sequence[Sequence[str]] = (),
) -> BleuScore:
    """Computes BLEU of detokenized text as the paper reports it (Table 2).

    The steps of tensor2tensor/utils/get_ende_bleu.sh: typographic punctuation becomes
    ASCII, Moses tokenizes (without aggressive hyphen splitting, or the next step would
    split hyphens twice and inflate the score), German words are split at their hyphens
    (not French ones: those figures are plain tokenized BLEU), and multi-bleu.perl
    scores. The references go through the same steps; tensor2tensor read a file of them
    that had been tokenized beforehand.

    If the only reference is newstest2014's German one, its quotes become ASCII first,
    as in that file (see `newstest2014.with_ascii_quotes`). The signature then contains
    `refquotes:ascii`, and `original_quotes` is the score without this step.

    The signature is of our own form and names every step. Raises as `sacre_bleu`.
    """
    split = target_lang == "de"
    texts = [hypotheses, references, *more_references]
    for lines in texts:
        check_line_counts(hypotheses, lines)
    own, *others = (
        moses_tokens(lines, target_lang, split_compounds=split) for lines in texts
    )
    signature = "|".join(
        [
            f"nrefs:{len(texts) - 1}|case:mixed|eff:no|punct:ascii",
            f"tok:moses-{target_lang}-nonaggressive",
            f"compounds:{'split-at-hyphen' if split else 'whole'}",
            "smooth:none|bleu:multi-bleu.perl",
            f"sacremoses:{version('sacremoses')}|sacrebleu:{version('sacrebleu')}",
        ]
    )
    result = replace(multi_bleu(own, *others), signature=signature)
    googles = with_ascii_quotes(references) if split and len(others) == 1 else None
    if googles is None:
        return result
    return replace(
        multi_bleu(own, moses_tokens(googles, target_lang, split_compounds=split)),
        signature=signature.replace("punct:ascii", "punct:ascii|refquotes:ascii"),
        original_quotes=result,
    )


def moses_tokens(
    lines: Sequence[str], lang: str, *, split_compounds: bool
) -> list[str]:
    """Tokenizes plain text as the paper's BLEU script does, spaces between tokens.

    sacremoses follows the Moses tokenizer of 2016, the paper's own time; since November
    2018 the Perl original also splits the full stop from a number or an abbreviation
    that ends a line (about one line in 400 of newstest2014). With `split_compounds`
    `a-b` becomes `a ##AT##-##AT## b`.
    """
    # Imported here: commands that compute no BLEU should not wait for it.
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    punctuation = MosesPunctNormalizer(lang)
    tokenizer = MosesTokenizer(lang)
    tokenized = [
        tokenizer.tokenize(punctuation.replace_unicode_punct(line), return_str=True)
        for line in lines
    ]
    if not split_compounds:
        return tokenized
    return [_HYPHEN_IN_WORD.sub(r"\1 ##AT##-##AT## \2", line) for line in tokenized]


def check_line_counts(
    hypotheses: Sequence[object], references: Sequence[object]
) -> None:
    """Raises UserError unless there are as many hypotheses as references, and some."""
    if len(hypotheses) != len(references):
        raise UserError(
            f"BLEU needs one hypothesis for each reference, but there are "
            f"{len(hypotheses):,} hypotheses and {len(references):,} references."
        )
    if not hypotheses:
        raise UserError("BLEU needs at least one line; there is none.")
