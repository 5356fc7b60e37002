"""Computes BLEU with sacreBLEU and as in the paper.

`sacre_bleu` is the score to publish: sacreBLEU tokenizes the plain text itself (Post
2018, "A Call for Clarity in Reporting BLEU Scores"). `paper_bleu` is the score of the
paper's Table 2: BLEU of Moses tokens with German compounds split at their hyphens, as
in tensor2tensor/utils/get_ende_bleu.sh. It is usually higher (by about 0.7 on
newstest2014), so the two scores are not comparable.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import NamedTuple

from sacrebleu.metrics import BLEU
from sacrebleu.metrics.bleu import BLEUScore

from t2t_repro.evaluation.newstest2014 import replace_quotes
from t2t_repro.evaluation.references import omit_empty_references
from t2t_repro.formats.languages import base_language
from t2t_repro.system.errors import UserError

# As in Perl, `aa-b-c` is split only once, because the match of `a-b` consumes the b.
_HYPHEN_IN_WORD = re.compile(r"(\S)-(\S)", re.ASCII)

TOKENIZERS = (
    *("13a", "intl", "char", "none", "zh", "ja-mecab", "ko-mecab"),
    *("flores101", "flores200"),
)
"""Tokenizers of sacreBLEU, for `sacre_bleu`."""

# Languages by ISO 639-1, 639-2 and 639-3 code, with sacreBLEU's tokenizer for them.
_TOKENIZER_OF = dict.fromkeys(("zh", "zho", "chi", "cmn", "yue", "wuu"), "zh")
_TOKENIZER_OF |= {"ja": "ja-mecab", "jpn": "ja-mecab"}
_TOKENIZER_OF |= {"ko": "ko-mecab", "kor": "ko-mecab"}
# Tibetan, Dzongkha, Khmer, Lao, Burmese and Thai are written without spaces, and
# sacreBLEU lacks a tokenizer for them.
_UNSPACED = {
    *("bo", "bod", "tib", "dz", "dzo", "km", "khm", "lo", "lao"),
    *("my", "mya", "bur", "th", "tha"),
}
# Thai, Lao, Tibetan, Burmese, Khmer, kana and Han characters.
_UNSPACED_TEXT = re.compile(
    r"[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]"
)


@dataclass(frozen=True)
class BleuScore:
    """Corpus BLEU with a signature of its settings."""

    bleu: BLEUScore  # Score, precisions, brevity penalty and lengths from sacreBLEU.
    signature: str  # Settings in sacreBLEU's key:value format.
    # Score against the official reference; set by `paper_bleu` for newstest2014 only.
    original_quotes: BleuScore | None = None

    @property
    def score(self) -> float:
        """BLEU from 0 to 100."""
        return self.bleu.score


class BleuTokenizer(NamedTuple):
    """Tokenizer of BLEU for a language.

    Attributes:
        name: Name of the tokenizer, one of `TOKENIZERS`.
        note: Line for the user if this tokenizer does not suit the text; else "".
    """

    name: str
    note: str = ""


def is_unspaced(target_lang: str | None) -> bool:
    """Returns whether sacreBLEU lacks a tokenizer for a language without spaces."""
    return base_language(target_lang or "") in _UNSPACED


def select_tokenizer(
    target_lang: str | None, references: Sequence[str] = ()
) -> BleuTokenizer:
    """Returns sacreBLEU's tokenizer for a target language.

    Characters replace a tokenizer that is missing or not installed.

    Args:
        target_lang: Language code, such as "zh", "zh-TW" or "zho_Hans"; None if
            unknown.
        references: Reference translations, which show whether an unknown language is
            written without spaces.
    """
    if is_unspaced(target_lang):
        note = (
            f"sacreBLEU lacks a tokenizer for {target_lang}: BLEU is computed over "
            "characters (tok:char); prefer chrF"
        )
        return BleuTokenizer("char", note)
    name = _TOKENIZER_OF.get(base_language(target_lang or ""), "13a")
    if name == "13a":
        text = "".join(references)
        if 2 * len(_UNSPACED_TEXT.findall(text)) > len(text):
            note = (
                "the references are written without spaces, so BLEU with the "
                "tokenizer 13a is meaningless: set --target_lang or --tokenize"
            )
            return BleuTokenizer(name, note)
        return BleuTokenizer(name)
    try:
        BLEU(tokenize=name)
    except _NOT_INSTALLED:
        extra = name.partition("-")[0]
        note = (
            f"sacreBLEU's tokenizer {name} is not installed: BLEU is computed over "
            f'characters (tok:char); pip install "sacrebleu[{extra}]" adds it'
        )
        return BleuTokenizer("char", note)
    return BleuTokenizer(name)


def check_tokenizer(name: str) -> str:
    """Returns the name; raises UserError if sacreBLEU cannot use this tokenizer."""
    if name not in TOKENIZERS:
        raise UserError(f"--tokenize {name}: use one of {', '.join(TOKENIZERS)}")
    try:
        BLEU(tokenize=name)
    except _NOT_INSTALLED as error:
        reason = " ".join(str(error).split()) or "another dictionary is installed"
        raise UserError(f"--tokenize {name}: {reason}") from None
    return name


def sacre_bleu(
    hypotheses: Sequence[str],
    *references: Sequence[str],
    tokenize: str = "13a",
    smooth_method: str = "exp",
) -> BleuScore:
    """Computes the cased corpus BLEU of detokenized text with sacreBLEU.

    Args:
        hypotheses: Translations, one per line.
        *references: One or several references of the same lines; see
            `omit_empty_references`.
        tokenize: sacreBLEU tokenizer, e.g. "13a", "intl" or "none".
        smooth_method: "exp" or "none".

    Raises:
        UserError: The numbers of lines differ or are 0.
    """
    for lines in references:
        check_line_counts(hypotheses, lines)
    metric = BLEU(tokenize=tokenize, smooth_method=smooth_method, force=True)
    result = metric.corpus_score(hypotheses, omit_empty_references(references))
    return BleuScore(result, str(metric.get_signature()))


def multi_bleu(hypotheses: Sequence[str], *references: Sequence[str]) -> BleuScore:
    """Computes BLEU of tokenized text like Moses' multi-bleu.perl.

    White space separates the tokens. Text is not lowercased and the score is not
    smoothed, so a corpus without a matching 4-gram scores 0. Raises like `sacre_bleu`.
    """
    return sacre_bleu(hypotheses, *references, tokenize="none", smooth_method="none")


def paper_bleu(
    hypotheses: Sequence[str],
    references: Sequence[str],
    target_lang: str,
    more_references: Sequence[Sequence[str]] = (),
) -> BleuScore:
    """Computes BLEU of detokenized text as reported in the paper (Table 2).

    The steps are those of tensor2tensor/utils/get_ende_bleu.sh:

    1. Convert typographic punctuation to ASCII.
    2. Tokenize with Moses, without aggressive hyphen splitting: the next step would
       split hyphens again and inflate the score.
    3. Split German words at hyphens. French words are not split, because the paper's
       French scores are plain tokenized BLEU.
    4. Compute the score of multi-bleu.perl.

    References are processed in the same way. (tensor2tensor read a tokenized file.) If
    the only reference is newstest2014's German one, its quotes are first converted to
    ASCII, as in tensor2tensor's file (see `newstest2014.replace_quotes`). The
    signature then contains `refquotes:ascii`, and `original_quotes` is the score
    without this conversion.

    Args:
        hypotheses: Translations, one per line.
        references: References of the same lines.
        target_lang: Language code.
        more_references: Additional references of the same lines.

    Returns:
        The score, with a signature that lists all steps.

    Raises:
        UserError: The numbers of lines differ or are 0.
    """
    split = target_lang == "de"
    texts = [hypotheses, references, *more_references]
    tokens, *reference_tokens = (
        moses_tokens(lines, target_lang, split_compounds=split) for lines in texts
    )
    result = multi_bleu(tokens, *reference_tokens)
    number_of_references, _, _ = result.signature.partition("|")
    signature = (
        f"{number_of_references}|case:mixed|eff:no|punct:ascii|"
        f"tok:moses-{target_lang}-nonaggressive|"
        f"compounds:{'split-at-hyphen' if split else 'whole'}|"
        "smooth:none|bleu:multi-bleu.perl|"
        f"sacremoses:{version('sacremoses')}|sacrebleu:{version('sacrebleu')}"
    )
    result = replace(result, signature=signature)
    ascii_quotes = None
    if split and len(reference_tokens) == 1:
        ascii_quotes = replace_quotes(references)
    if ascii_quotes is None:
        return result
    ascii_tokens = moses_tokens(ascii_quotes, target_lang, split_compounds=split)
    return replace(
        multi_bleu(tokens, ascii_tokens),
        signature=signature.replace("punct:ascii", "punct:ascii|refquotes:ascii"),
        original_quotes=result,
    )


def moses_tokens(
    lines: Sequence[str], lang: str, *, split_compounds: bool
) -> list[str]:
    """Tokenizes plain text like the paper's BLEU script.

    sacremoses implements the Moses tokenizer of 2016, the time of the paper. Since
    November 2018 the Perl original also splits a full stop from a number or an
    abbreviation at the end of a line (about one line in 400 of newstest2014).

    Args:
        lines: Plain text.
        lang: Language code.
        split_compounds: Whether to replace `a-b` with `a ##AT##-##AT## b`.

    Returns:
        The lines, with spaces between tokens.
    """
    # Local import, to speed up the start of commands that do not compute BLEU.
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


# A package is missing, or its dictionary or model is not the expected one.
_NOT_INSTALLED = (RuntimeError, ImportError, AssertionError, OSError)


def check_line_counts(
    hypotheses: Sequence[object], references: Sequence[object]
) -> None:
    """Raises UserError if the numbers of lines differ or are 0."""
    if len(hypotheses) != len(references):
        raise UserError(
            f"BLEU needs one hypothesis per reference, but there are "
            f"{len(hypotheses):,} hypotheses and {len(references):,} references"
        )
    if not hypotheses:
        raise UserError("BLEU needs at least one line, but the input is empty")
