"""Documents whose texts are translated in place, while all other bytes stay."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from t2t_repro.formats.documents.codes import Codes, Piece
from t2t_repro.formats.documents.messages import (
    Continues,
    Message,
    continues_lower_case,
)
from t2t_repro.system.errors import UserError
from t2t_repro.system.text_formats import describe_encoding

_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}


class Edit(NamedTuple):
    """A replacement of the characters [start, end) of a document."""

    start: int
    end: int
    text: str


class Segment(NamedTuple):
    """A text of a document that is to be translated.

    Attributes:
        name: Name of the unit in the document.
        source: The text without inline codes.
        texts: Texts to translate, each in one line. They contain stand-ins of codes.
        edit: Function from an iterator over the translations of all segments, which it
            advances by the length of `texts`, to the changes of the document.
    """

    name: str
    source: str
    texts: Sequence[str]
    edit: Callable[[Iterator[str]], Iterable[Edit]]


@dataclass(frozen=True)
class Request:
    """Settings of the translation of a document.

    Attributes:
        path: Path of the document.
        source_lang: Code of the source language; None if unknown.
        target_lang: Code of the target language; None if unknown.
        retranslate: Whether texts that have a translation are translated, too.
    """

    path: Path
    source_lang: str | None = None
    target_lang: str | None = None
    retranslate: bool = False


class Text:
    """Decoded text of a file.

    Args:
        data: Bytes of the file.
        path: Path of the file, for messages.
        encoding: Encoding of a file without a byte order mark.
        errors: Python's rule for characters that the encoding lacks.

    Attributes:
        text: The text, with its line ends.
        newline: Line end of the file.
        codes: Inline codes of the text.

    Raises:
        UserError: The encoding is unknown, the bytes are not in the encoding, or the
            text contains NUL.
    """

    def __init__(
        self,
        data: bytes,
        path: Path,
        encoding: str = "utf-8",
        errors: str = "strict",
    ) -> None:
        mark = next((each for each in _MARKS if data.startswith(each)), b"")
        self._encoding = _MARKS.get(mark, encoding)
        self._path, self._mark, self._errors = path, mark, errors
        try:
            self.text = data.removeprefix(mark).decode(self._encoding)
        except LookupError:
            raise UserError(
                f"{path}: unknown encoding {encoding}; convert the file to UTF-8"
            ) from None
        except UnicodeDecodeError as error:
            number = data.count(b"\n", 0, error.start) + 1
            lines = data.split(b"\n", number)
            raise UserError(
                f"{path}:{number}: the bytes are not {self._encoding}; "
                f"{describe_encoding(lines[number - 1])}"
            ) from None
        if "\0" in self.text:
            raise self.error(self.text.index("\0"), "a NUL character; repair the file")
        self.newline = "\r\n" if "\r\n" in self.text else "\n"
        self.codes = Codes(self.text)

    def error(self, place: int, message: str) -> UserError:
        """Returns the exception for a mistake at a character."""
        number = self.text.count("\n", 0, place) + 1
        return UserError(f"{self._path}:{number}: {message}")

    def encode(self, text: str) -> bytes:
        """Returns a text as bytes of the file; raises UserError if that is impossible.

        A byte order mark stays.
        """
        try:
            return self._mark + text.encode(self._encoding, self._errors)
        except UnicodeEncodeError as error:
            raise UserError(
                f"{self._path}: {self._encoding} has no character "
                f"{text[error.start]!r}, which a translation contains; convert the "
                "file to UTF-8 and run the command again, which resumes"
            ) from None


def make_segment(
    text: Text,
    name: str,
    pieces: Iterable[Piece],
    write: Callable[[str], Iterable[Edit]],
    escape: Callable[[str], str] = str,
    continues: Continues = continues_lower_case,
    in_place: bool = False,
) -> Segment:
    """Returns the segment of a text.

    Args:
        text: Text of the document.
        name: Name of the unit.
        pieces: Text of the unit and its codes.
        write: Function from the translation, as the document writes it, to the changes.
        escape: Function that encodes text without codes.
        continues: Rule for lines that continue a sentence.
        in_place: Whether the translation replaces its source, so that equal ones change
            nothing.
    """
    marked = text.codes.mark(pieces)
    message = Message(marked, text.codes, continues)

    def edit(translations: Iterator[str]) -> Iterable[Edit]:
        new = message.join(translations)
        if in_place and new == marked:
            return ()
        return write(text.codes.restore(new, escape))

    return Segment(name, text.codes.show(marked), message.texts, edit)


class Document:
    """A document and its segments.

    Args:
        text: Text of the document.
        segments: Segments in any order. Their edits do not overlap.
        edits: Additional changes.

    Attributes:
        segments: The segments.
        texts: Texts to translate, each in one line.
        codes: Inline codes of the texts.
    """

    def __init__(
        self, text: Text, segments: Sequence[Segment], edits: Iterable[Edit] = ()
    ) -> None:
        self._text, self.segments, self.codes = text, segments, text.codes
        self._edits = edits
        self.texts = [line for segment in self.segments for line in segment.texts]

    def write(self, translations: Sequence[str]) -> bytes:
        """Returns the bytes of the translated document.

        Args:
            translations: Translations of `texts`.

        Raises:
            UserError: The document's encoding lacks a character.
        """
        following = iter(translations)
        edits = list(self._edits)
        for segment in self.segments:
            edits += segment.edit(following)
        text, parts, end = self._text.text, [], 0
        # Two edits may begin at the same character: an insertion precedes.
        for edit in sorted(dict.fromkeys(edits), key=lambda edit: edit[:2]):
            parts += [text[end : edit.start], edit.text]
            end = edit.end
        return self._text.encode("".join([*parts, text[end:]]))
