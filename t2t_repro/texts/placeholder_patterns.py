"""Regular expressions of placeholders: presets, and those of users."""

import re
from collections.abc import Iterator

from t2t_repro.system.errors import UserError

Span = tuple[int, int]
"""Index of the first character, and index after the last one."""

PRESETS = {
    "braces": r"[$#%]?\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*+\})*+\})*+\}",
    # In "50%off", the % after a digit is a percent sign.
    "printf": r"(?<!\d)%(?:\([^\s()]+\)|<[^\s<>]+>|\d+\$)?[-+#0]*(?:\d+|\*)?"
    r"(?:\.(?:\d+|\*))?(?:hh?|ll?|[Lqjzt])?[diouxXeEfFgGaAcCsSrpn@]|%%",
    "tags": r"</?\w[\w:.-]*(?:\s(?:\"[^\"]*\"|'[^']*'|[^<>\"'])*)?/?>",
    "urls": r"(?i:(?:https?|ftp)://|\bwww\.)(?:\([^X]*\)|[^X])*"
    r"(?:\([^X]*\)|[\w/=#&%~+-])".replace(
        "X", r"\s<>\"()\u3001-\u3003\u3008-\u3011\uff01-\uff0f"
    ),
    "emails": r"(?<![\w.+%-])[\w.+%-]*\w@\w[\w-]*(?:\.\w[\w-]*)+",
}
"""Regular expressions by name: `{0}`, `{name}` and `%{name}`; `%s`, `%(x)d`, `%<x>d`
and `%1$s`; `<b>...</b>`; URLs; e-mail addresses."""

ALL = "all"
"""Name of all presets together."""

_MOST_CONTEXT = 8  # Characters that may become a part of a placeholder on each side.


def compile_pattern(text: str, name: str) -> re.Pattern[str]:
    """Returns the pattern of a preset or of a regular expression.

    Args:
        text: Name of a preset, or a regular expression.
        name: Name of the setting in messages.

    Raises:
        UserError: The regular expression is invalid or matches the empty text.
    """
    if text not in PRESETS and text.isidentifier():
        raise UserError(
            f"{name}: unknown preset {text!r}; choose one of "
            f"{', '.join([*PRESETS, ALL])}, or write (?:{text}) to match this word"
        )
    try:
        pattern = re.compile(PRESETS.get(text, text))
    except (re.error, OverflowError, RecursionError) as error:
        raise UserError(
            f"{name}: {text!r} is not a valid regular expression: {error}"
        ) from None
    if pattern.search("") or any(not match[0] for match in pattern.finditer("a b")):
        raise UserError(
            f"{name}: the regular expression {text!r} matches the empty text; "
            "let it match at least one character"
        )
    return pattern


def find(pattern: re.Pattern[str], text: str) -> Iterator[Span]:
    """Yields the spans of matches, without white space at their ends.

    They include the adjacent characters that a look-around of the pattern needs.
    """
    for match in pattern.finditer(text):
        start = match.end() - len(match[0].lstrip())
        end = match.start() + len(match[0].rstrip())
        yield _add_context(pattern, text, start, end)


def _add_context(pattern: re.Pattern[str], text: str, start: int, end: int) -> Span:
    """Extends a match by the adjacent characters that its look-around needs."""
    if start >= end or pattern.fullmatch(text[start:end]):
        return start, end
    before = len(re.findall(r"\S*\Z", text[max(start - _MOST_CONTEXT, 0) : start])[0])
    after = len(re.findall(r"\A\S*", text[end : end + _MOST_CONTEXT])[0])
    for size in range(1, _MOST_CONTEXT + 1):
        for left, right in ((size, 0), (0, size), (size, size)):
            low, high = start - min(left, before), end + min(right, after)
            around = pattern.finditer(text[low:high])
            if (start - low, end - low) in (match.span() for match in around):
                return low, high
    return start, end
