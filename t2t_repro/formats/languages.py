"""Matching of language codes: case, regions and scripts."""

from __future__ import annotations

from collections.abc import Sequence


def normalize(code: str) -> str:
    """Returns a code in the form that `match` compares: "pt_BR" becomes "pt-br"."""
    return code.strip().replace("_", "-").lower()


def base_language(code: str) -> str:
    """Returns a language code without region and script: "pt" for "pt_BR"."""
    return normalize(code).partition("-")[0]


def match(wanted: str, code: str | None) -> int:
    """Returns how well a language code matches a wanted one; 0 if it does not.

    The rule is the basic filtering of RFC 4647, section 3.3.1.

    Args:
        wanted: Code that the user wants. "en" accepts "en", "EN-us" and "en_GB", but
            "en-GB" does not accept "en" or "en-US".
        code: Code in a file. None, an unknown language, is accepted.

    Returns:
        2 if the codes are equal, 1 if `code` is a variety of `wanted` or None, else 0.
    """
    if code is None:
        return 1
    wanted, code = normalize(wanted), normalize(code)
    if code == wanted:
        return 2
    return int(code.startswith(f"{wanted}-"))


def find_pair(
    source_lang: str, target_lang: str, codes: Sequence[str | None]
) -> tuple[int, int] | None:
    """Returns the indices of the source and the target among the languages of a unit.

    An equal code wins over a variety, and the first variety over later ones.

    Args:
        source_lang: Wanted source language.
        target_lang: Wanted target language.
        codes: Language codes in the order of the file; None if unknown.

    Returns:
        Two different indices, or None if a language is missing.
    """
    taken: list[int] = []
    for wanted in (source_lang, target_lang):
        ranks = {i: match(wanted, c) for i, c in enumerate(codes) if i not in taken}
        best = max(ranks, key=ranks.__getitem__, default=None)
        if best is None or not ranks[best]:
            return None
        taken.append(best)
    return taken[0], taken[1]
