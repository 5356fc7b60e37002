"""Rules that drop a pair for its own text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")

# Scripts without spaces between words, in which each character counts as a word.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")
_LETTERS = re.compile(r"\w+")
_NOT_LETTERS = re.compile(r"[\W\d_]+")
_NOT_ASCII = re.sub(rb"[A-Za-z]", b"", bytes(range(128)))
_URL = re.compile(r"(?:https?://|www\.)\S+|[\w.+-]+@[\w-]+\.[\w.-]+", re.IGNORECASE)
_URL_SIGN = re.compile("://|@|www", re.IGNORECASE)
# Replacement and control characters, or a question mark in place of a letter.
_BROKEN = re.compile(r"[\ufffd\x00-\x08\x0e-\x1f\x7f-\x9f]|[a-z]\?[a-z]")
_NUMBER = re.compile(r"\d{1,3}(?:[ '\u2019]\d{3})+(?!\d)|\d+(?:[.,:]\d+)*")

Drops = Callable[[str, str, float], bool]
"""Returns whether to drop a pair; arguments: source, target, threshold of the rule."""


def split_words(text: str) -> list[str]:
    """Returns the words between spaces, or characters of Chinese, Thai and so on."""
    return text.split() if text.isascii() else _WORD.findall(text)


def is_empty(source: str, target: str, threshold: float) -> bool:
    """Returns whether a side is empty."""
    return not (source and target)


def is_broken(source: str, target: str, threshold: float) -> bool:
    """Returns whether a side has characters that a wrong decoding left."""
    both = f"{source}\t{target}"
    return bool(_BROKEN.search(both) and _BROKEN.search(_URL.sub("", both)))


def lacks_letters(source: str, target: str, threshold: float) -> bool:
    """Returns whether letters are a smaller share of a side, spaces excluded."""
    for text in (source, target):
        least = threshold * (len(text) - text.count(" "))
        # The letters of ASCII, which are enough in most texts, are counted faster.
        ascii_letters = len(text.encode("ascii", "ignore").translate(None, _NOT_ASCII))
        if ascii_letters < least and len(_NOT_LETTERS.sub("", text)) < least:
            return True
    return False


def has_long_word(source: str, target: str, threshold: float) -> bool:
    """Returns whether a word other than a URL has more characters."""
    words = f"{source} {target}".split()
    return max(map(len, words), default=0) > threshold and any(
        len(word) > threshold and not _URL.search(word)
        for word in split_words(" ".join(words))
    )


def is_long(source: str, target: str, threshold: float) -> bool:
    """Returns whether a side has more words."""
    return max(len(source), len(target)) > threshold and any(
        len(split_words(text)) > threshold for text in (source, target)
    )


def is_copy(source: str, target: str, threshold: float) -> bool:
    """Returns whether the sides share at least this fraction of their words.

    Case and punctuation are ignored. The fraction is that of the longer side.
    """
    first = set(_LETTERS.findall(source.casefold()))
    second = set(_LETTERS.findall(target.casefold()))
    return len(first & second) >= threshold * max(len(first), len(second), 1)


def urls_differ(source: str, target: str, threshold: float) -> bool:
    """Returns whether the URLs and mail addresses of the sides differ."""
    if not (_URL_SIGN.search(source) or _URL_SIGN.search(target)):
        return False
    first, second = (
        Counter(url.rstrip(".,;:!?)'\"»“”").casefold() for url in _URL.findall(text))
        for text in (source, target)
    )
    return first != second


def numbers_differ(source: str, target: str, threshold: float) -> bool:
    """Returns whether each side has a number that the other side lacks.

    A number of only one side may be a word on the other. Equal numbers are those
    with the same digits (1,5 and 1.50; 150 cm and 1.50 m; 2,000,000 and 2 million),
    hours that differ by 12, and years with two or four digits.
    """
    if not (_NUMBER.search(source) and _NUMBER.search(target)):
        return False
    first, second = (_NUMBER.findall(_URL.sub("", text)) for text in (source, target))
    first, second = _remove_matches(first, second, _have_same_digits)
    left, right = _remove_matches(_split(first), _split(second), _are_same_part)
    return bool(left and right)


def _split(numbers: Sequence[str]) -> list[int]:
    """Returns the parts of numbers such as 2:30 that are not zero."""
    parts = (int(part) for number in numbers for part in re.split(r"\D", number))
    return [part for part in parts if part]


def _remove_matches(
    first: Sequence[T], second: Sequence[T], match: Callable[[T, T], bool]
) -> tuple[list[T], list[T]]:
    """Returns the elements of both lists without those that match, one for one."""
    rest, others = list(second), []
    for element in first:
        found = next((other for other in rest if match(element, other)), None)
        if found is None:
            others.append(element)
        else:
            rest.remove(found)
    return others, rest


def _have_same_digits(first: str, second: str) -> bool:
    digits = [re.sub(r"\D", "", number) for number in (first, second)]
    if first.isdigit() and second.isdigit():  # 10 and 100 differ, 1.0 and 1.00 do not.
        return int(first) == int(second)
    return digits[0].strip("0") == digits[1].strip("0")


def _are_same_part(first: int, second: int) -> bool:
    low, high = sorted((first, second))
    is_hour = high - low == 12 and high <= 24
    is_year = 10 <= low < 100 <= 1000 <= high < 10000 and high % 100 == low
    return low == high or is_hour or is_year


PAIR_RULES: Mapping[str, tuple[Drops, float]] = {
    "empty": (is_empty, 0),
    "broken_characters": (is_broken, 0),
    "letters": (lacks_letters, 0.25),
    "word_length": (has_long_word, 40),
    "words": (is_long, 100),
    "copy": (is_copy, 0.8),
    "urls": (urls_differ, 0),
    "numbers": (numbers_differ, 0),
}
"""Rules and their default thresholds (0: none) by name, in order."""
