"""Repairs of texts from translation memories and the web: marks of other programs."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from sacremoses import MosesDetokenizer

# Bytes of characters in Latin-1, and in windows-1252 where it differs.
_BYTES = {chr(byte): byte for byte in range(0x80, 0x100)} | {
    bytes([byte]).decode("cp1252", "ignore"): byte for byte in range(0x80, 0xA0)
}


def _class_of(first: int, last: int) -> str:
    return f"[{''.join(c for c, byte in _BYTES.items() if first <= byte <= last)}]"


_NEXT = _class_of(0x80, 0xBF)
_MISREAD = re.compile(
    f"(?:{_class_of(0xC2, 0xDF)}{_NEXT}|{_class_of(0xE0, 0xEF)}{_NEXT}{{2}}"
    f"|{_class_of(0xF0, 0xF4)}{_NEXT}{{3}})+"
)
# A misread "à" whose no-break space became a space.
_MISREAD_SPACE = re.compile(r"\bÃ(?= \w)")
_JOINED = re.compile(r"(?<=\S)@@(?: |$)| ?￭ ?")
_ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{1,31}|#\d{1,7}|#[xX][0-9A-Fa-f]{1,6});")
_MOST_ENCODINGS = 3  # "&amp;amp;amp;"; more occur only in texts about entities.
_INLINE = "a abbr b big cite code del em font i ins kbd mark q s small span strong sub"
_INLINE += " sup tt u var"
_BLOCK = "article blockquote body br center dd div dl dt footer form h1 h2 h3 h4 h5 h6"
_BLOCK += " head header hr html img input li nav ol option p pre section table tbody td"
_BLOCK += " tfoot th thead title tr ul"
_ATTRIBUTE = r"""\s+[\w:-]+\s*=\s*(?:"[^"<>]*"|'[^'<>]*'|[^\s<>"']+)"""
_INLINE_TAG, _BLOCK_TAG = (
    re.compile(rf"</?(?:{names})(?:{_ATTRIBUTE})*\s*/?>", re.IGNORECASE)
    for names in (_INLINE.replace(" ", "|"), _BLOCK.replace(" ", "|"))
)
# French has a space before ! and ? in all texts.
_TOKEN_STARTS = (" .", " ,", " '", " \u2019", "@")
_TOKENIZED = re.compile(
    r" [.,](?= |$)|@[-/.,]@| ['\u2019](?:(?:s|t|m|d|re|ve|ll)(?= |$)| \w)"
)
_TOKENIZED_SIGN = re.compile(r" [!?](?= |$)")

Repair = Callable[[str, str], str]
"""Returns the repaired text, or the same text; arguments: text, language code."""


def repair_mojibake(text: str, language: str) -> str:
    """Decodes UTF-8 characters that were read as windows-1252 or Latin-1.

    A sequence is decoded if it is a character of Latin-1, a punctuation mark, or one of
    several. A single one of other characters may be correct text, as in `„Ä“`.
    """
    if text.isascii():
        return text
    repaired = _MISREAD.sub(_decode, text)
    return _MISREAD_SPACE.sub("à", repaired) if repaired != text else text


def _decode(match: re.Match[str]) -> str:
    try:
        decoded = bytes(_BYTES[character] for character in match[0]).decode()
    except UnicodeDecodeError:
        return match[0]
    is_plain = decoded[0] < "\u0100" or "\u2010" <= decoded[0] <= "\u2122"
    return decoded if is_plain or len(decoded) > 1 else match[0]


def join_subwords(text: str, language: str) -> str:
    """Joins subwords: `@@` of subword-nmt, `▁` of SentencePiece, `￭` of OpenNMT."""
    if "▁" in text:
        text = text.replace(" ", "").replace("▁", " ").strip()
    return _JOINED.sub("", text) if "@@" in text or "￭" in text else text


def unescape_entities(text: str, language: str) -> str:
    """Replaces HTML entities such as `&quot;`, up to three times encoded."""
    for _ in range(_MOST_ENCODINGS):
        if "&" not in text or not _ENTITY.search(text):
            break
        text = _ENTITY.sub(lambda match: html.unescape(match[0]), text)
    return text


def remove_tags(text: str, language: str) -> str:
    """Removes the tags of HTML elements; elements that divide a text become spaces.

    Other names in angle brackets, such as `<file>`, may be placeholders and remain.
    """
    if "<" not in text:
        return text
    return join_spaces(_BLOCK_TAG.sub(" ", _INLINE_TAG.sub("", text)))


def detokenize(text: str, language: str) -> str:
    """Joins the tokens of a text that Moses' tokenizer divided."""
    if not (
        (any(map(text.__contains__, _TOKEN_STARTS)) and _TOKENIZED.search(text))
        or (language != "fr" and _TOKENIZED_SIGN.search(text))
    ):
        return text
    return str(_detokenizer(language).detokenize(text.split()))


def join_spaces(text: str) -> str:
    """Replaces runs of white space by one space and removes it at the ends."""
    return " ".join(text.split())


@lru_cache
def _detokenizer(language: str) -> MosesDetokenizer:
    return MosesDetokenizer(lang=language)


REPAIRS: Mapping[str, Repair] = {
    "mojibake": repair_mojibake,
    "subwords": join_subwords,
    "entities": unescape_entities,
    "tags": remove_tags,
    "tokens": detokenize,
}
"""Repairs by the name of their rule, in order."""
