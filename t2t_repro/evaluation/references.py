"""Empty reference translations, which sacreBLEU's metrics treat differently."""

from collections.abc import Sequence
from typing import Any

from t2t_repro.system.errors import UserError


def require_text(lines: Sequence[str], name: str) -> None:
    """Raises UserError if all lines of the file or split `name` are blank."""
    if not any(line.strip() for line in lines):
        raise UserError(f"{name}: all lines are blank; give the file with the text")


def omit_empty_references(
    references: Sequence[Sequence[str]],
) -> list[list[Any]]:
    """Replaces the empty references of lines that have another reference by None.

    sacreBLEU does not count None as a reference. An empty one would count: TER would
    divide by a smaller mean length, and BLEU could choose length 0 as the closest one.
    The first reference of a line without any text remains.

    Returns:
        Strings and None, which the annotations of sacreBLEU's metrics omit.
    """
    results: list[list[Any]] = [[*lines] for lines in references]
    for number, line in enumerate(zip(*references, strict=True)):
        texts = [text if text.strip() else None for text in line]
        if not any(texts):
            texts[0] = line[0]
        for result, text in zip(results, texts, strict=True):
            result[number] = text
    return results


def describe_empty_references(references: Sequence[Sequence[str]]) -> str:
    """Returns a line about empty references and their effect; "" if there are none."""
    lines = [list(map(str.strip, line)) for line in zip(*references, strict=True)]
    without = sum(not any(line) for line in lines)
    partly = sum(any(line) and not all(line) for line in lines)
    notes = []
    if without:
        notes.append(
            f"{without:,} of {len(lines):,} lines have an empty reference: chrF and "
            "chrF++ ignore their translations, and BLEU and TER count each word of "
            "them as wrong"
        )
    if partly:
        notes.append(
            f"{partly:,} of {len(lines):,} lines have fewer references than there are "
            "files, because an empty line is not a reference"
        )
    return "; ".join(notes)
