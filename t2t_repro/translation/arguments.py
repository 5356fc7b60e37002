"""Checks of the arguments of the Python interface."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

_T = TypeVar("_T")


def check_terms(
    terms: Mapping[str, str] | Sequence[Sequence[str]], lines: Sequence[str]
) -> Mapping[str, str] | Sequence[Sequence[str]]:
    """Returns valid terms; raises ValueError for others."""
    if isinstance(terms, Mapping):
        sources, targets = (
            check_term_texts(terms.keys()),
            check_term_texts(terms.values()),
        )
        if len({*sources}) < len(sources):
            raise ValueError("terms contains a source term twice")
        return dict(zip(sources, targets, strict=True))
    if not isinstance(terms, Iterable) or any(isinstance(row, str) for row in terms):
        raise ValueError("terms must be a dictionary, or one list per sentence")
    return check_number(lines, [check_term_texts(row) for row in terms], "terms")


def check_token_ids(values: Iterable[int]) -> tuple[int, ...]:
    """Returns token ids; raises TypeError for values that are not iterable."""
    if not isinstance(values, Iterable):
        raise TypeError(f"never must be token ids, not {values!r}")
    return tuple(values)


def check_term_texts(values: Iterable[str]) -> list[str]:
    """Returns terms with single spaces; raises ValueError for a blank term."""
    terms = [" ".join(term.split()) for term in check_strings(values, "terms")]
    if "" in terms:
        raise ValueError("terms contains a blank term")
    return terms


def check_number(lines: Sequence[str], values: list[_T], name: str) -> list[_T]:
    """Returns the values; raises ValueError if there is not one value per line."""
    if len(values) != len(lines):
        raise ValueError(f"{len(lines):,} sentences, but {len(values):,} {name}")
    return values


def check_pairs(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Returns pairs of strings; raises TypeError or ValueError for others."""
    if not isinstance(pairs, Iterable):
        raise TypeError(f"pairs must be pairs of strings, not {pairs!r}")
    checked = []
    for number, pair in enumerate(pairs):
        sides = check_strings(pair, f"pairs[{number}]")
        if isinstance(pair, str) or len(sides) != 2:
            raise ValueError(f"pairs[{number}] must be a source and a target")
        checked.append((sides[0], sides[1]))
    return checked


def check_strings(values: Iterable[str], name: str) -> list[str]:
    """Returns a list of strings; a single string becomes a list.

    Raises:
        TypeError: A value is not a string, or the values are unordered.
        ValueError: A string contains an unpaired surrogate.
    """
    if isinstance(values, str):
        values = [values]
    unordered = bytes | Mapping | set | frozenset
    if isinstance(values, unordered) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be strings, not {type(values).__name__}")
    strings = list(values)
    for number, text in enumerate(strings):
        if not isinstance(text, str):
            raise TypeError(f"{name}[{number}] must be a string, not {text!r:.60}")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"{name}[{number}] contains {text[error.start]!r}, which UTF-8 cannot "
                "encode"
            ) from None
    return strings
