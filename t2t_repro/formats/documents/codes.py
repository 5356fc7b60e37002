"""Inline codes of a document, which a translator keeps as if they were tags.

A text is translated with stand-ins for its codes: `<c4/>` for a single code, `<c5>` and
`</c5>` for a pair. Their names occur nowhere in the document, so that text such as
`<b>`, which a document writes as `&lt;b&gt;`, is not a code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple


class Code(NamedTuple):
    """An inline code.

    Attributes:
        text: The code as the document writes it.
        opens: Name of the pair that it begins; "" for none.
        closes: Name of the pair that it ends; "" for none.
        shown: Text inside the code that readers see and that stays untranslated.
    """

    text: str
    opens: str = ""
    closes: str = ""
    shown: str = ""


Piece = str | Code
"""Part of a text: decoded text, or a code."""


class Codes:
    """The codes of a document and their stand-ins.

    Args:
        document: Text of the document.

    Attributes:
        pattern: Regular expression of the stand-ins.
        stand_in: The compiled expression.
    """

    def __init__(self, document: str) -> None:
        self._name = "c"
        while re.search(rf"{self._name}\d", document):
            self._name += "c"
        self.pattern = rf"</?{self._name}\d+/?>"
        self.stand_in = re.compile(self.pattern)
        self._texts: dict[str, Code] = {}
        self._halves: set[str] = set()
        self._count = 0

    def mark(self, pieces: Iterable[Piece]) -> str:
        """Returns a text with stand-ins for its codes.

        A code whose partner is missing or overlaps another pair gets the stand-in of a
        single code.
        """
        texts: list[str] = []
        opened: list[tuple[int, str]] = []
        halves: dict[int, Code] = {}
        for piece in pieces:
            if isinstance(piece, str):
                texts.append(piece)
                continue
            same = [i for i, (_, name) in enumerate(opened) if name == piece.closes]
            if piece.closes and same:
                start = opened[same[-1]][0]
                del opened[same[-1] :]
                tag = f"{self._name}{self._count}>"
                self._texts[f"<{tag}"] = halves.pop(start)
                self._texts[f"</{tag}"] = piece
                self._count += 1
                texts[start] = f"<{tag}"
                texts.append(f"</{tag}")
                continue
            if piece.opens:
                opened.append((len(texts), piece.opens))
            if piece.opens or piece.closes:
                halves[len(texts)] = piece
                texts.append("")
            else:
                texts.append(self._mark_single(piece))
        for place, piece in halves.items():
            texts[place] = self._mark_single(piece)
            self._halves.add(texts[place])
        return "".join(texts)

    def show(self, text: str) -> str:
        """Returns a marked text without its codes."""
        return self.stand_in.sub(lambda match: self._texts[match[0]].shown, text)

    def restore(self, text: str, escape: Callable[[str], str] = str) -> str:
        """Returns a marked text as the document writes it.

        Args:
            text: Text with stand-ins.
            escape: Function that encodes the text between the codes.
        """
        parts, end = [], 0
        for match in self.stand_in.finditer(text):
            parts += [escape(text[end : match.start()]), self._texts[match[0]].text]
            end = match.end()
        return "".join([*parts, escape(text[end:])])

    def arrange(self, text: str, source: str, in_order: bool) -> str:
        """Ensures that a translation has each stand-in of its source once, nested.

        Args:
            text: Translation.
            source: Text that was translated.
            in_order: Whether the order must be that of the source.

        Returns:
            The translation. If its stand-ins are not valid, they are in the order of
            the source, at the same places.
        """
        wanted = self.stand_in.findall(source)
        found = self.stand_in.findall(text)
        in_order |= any(each in self._halves for each in wanted)
        if found == wanted or (
            not in_order and sorted(found) == sorted(wanted) and _is_nested(found)
        ):
            return text
        rest = iter(wanted)
        text = self.stand_in.sub(lambda match: next(rest, ""), text)
        return text + "".join(rest)

    def _mark_single(self, code: Code) -> str:
        stand_in = f"<{self._name}{self._count}/>"
        self._texts[stand_in] = code
        self._count += 1
        return stand_in


def _is_nested(stand_ins: Iterable[str]) -> bool:
    """Returns whether the pairs are nested, and no end precedes its beginning."""
    opened: list[str] = []
    for each in stand_ins:
        if each.startswith("</"):
            if not opened or opened.pop() != each.replace("/", ""):
                return False
        elif not each.endswith("/>"):
            opened.append(each)
    return True
