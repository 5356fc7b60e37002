"""Translates a text of any size: read, translated and written window by window."""

from __future__ import annotations

import hashlib
import itertools
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TextIO

from t2t_repro.system.atomic_file import (
    bounded_lines,
    decode_lines,
    is_special,
    iterate_lines,
    new_text_file,
)
from t2t_repro.system.errors import UserError
from t2t_repro.system.resumable_file import ResumableFile, resumable_file
from t2t_repro.translation.parser import Parser
from t2t_repro.translation.terms import TermTranslator
from t2t_repro.translation.translator import (
    MOST_CHARACTERS,
    ScoredText,
    Translation,
    Translator,
    windows,
)

# UTF-8 takes at most 4; one more shows that a line is too long, and one may be lost
# where the bytes are cut.
_MOST_BYTES = 4 * (MOST_CHARACTERS + 2)
_CUT_LINES_NAMED = 5

Record = Callable[[int, Translation], str]
"""Spells the translation of a line, numbered from 0, as whole lines."""

Align = Callable[[Sequence[str], Sequence[str]], list[str]]
"""Aligns sources and translations: a line in Pharaoh format for each pair."""


class InputText:
    """The text to translate.

    A file is read once beforehand: a mistake in its last line is better noticed now
    than in some hours. A pipe or a terminal is not.

    Args:
        name: a file, or "-" for standard input.

    Attributes:
        lines: how many there are; None if that is not known beforehand.
        fingerprint: identifies the lines; None if they are not known beforehand.

    Raises:
        UserError: the file cannot be read or is not UTF-8.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: int | None = None
        self.fingerprint: str | None = None
        self._start: int | None = None
        if not self._is_file():
            return
        if name == "-":
            self._start = sys.stdin.buffer.tell()
        digest = hashlib.sha256()
        self.lines = 0
        for line in self._read_once():
            self.lines += 1
            digest.update(line.encode() + b"\n")
        self.fingerprint = digest.hexdigest()

    def read(self) -> Iterator[str]:
        """Yields the lines, without line ends.

        Raises:
            UserError: as the class, or the file is no longer what it was.
        """
        digest = hashlib.sha256()
        for line in self._read_once():
            if self.fingerprint is not None:
                digest.update(line.encode() + b"\n")
            yield line
        if self.fingerprint not in (None, digest.hexdigest()):
            raise UserError(
                f"{self.name} changed while it was translated; run the command again."
            )

    def _read_once(self) -> Iterator[str]:
        if self.name != "-":
            return iterate_lines(self.name, may_be_empty=True, most_bytes=_MOST_BYTES)
        if self._start is not None:
            sys.stdin.buffer.seek(self._start)
        lines = bounded_lines(sys.stdin.buffer, _MOST_BYTES)
        return decode_lines(lines, "standard input")

    def _is_file(self) -> bool:
        if self.name != "-":
            return os.path.isfile(self.name)
        try:
            return stat.S_ISREG(os.fstat(sys.stdin.buffer.fileno()).st_mode)
        except OSError:  # It is no file of the system's.
            return False


class Stream:
    """An output that cannot be resumed; it has the interface of `ResumableFile`."""

    partial = None

    def __init__(self, file: TextIO) -> None:
        self.state: dict[str, Any] = {}
        self._file = file

    def append(self, text: str, state: Mapping[str, Any]) -> None:
        """Writes whole lines."""
        self._file.write(text)
        self._file.flush()  # Somebody may wait for it.


Output = Stream | ResumableFile


@contextmanager
def open_output(name: str, identity: Mapping[str, Any] | None) -> Iterator[Output]:
    """Opens standard output, a device, or a file that gets its name when it is whole.

    Args:
        name: the file, or "-" for standard output.
        identity: what it is made from (see `resumable_file`); None: not known, so an
            interrupted run has to begin anew.

    Raises:
        UserError: as `resumable_file`.
    """
    if name == "-":
        yield Stream(sys.stdout)
    elif identity is None or is_special(name):
        with new_text_file(name) as file:
            yield Stream(file)
    else:
        with resumable_file(name, identity) as resumed:
            yield resumed


@dataclass
class Done:
    """How far a translation is.

    Attributes:
        lines: lines translated.
        cut: how many of them were too long and have been cut.
        first_cut: the numbers of the first few of those, from 1.
    """

    lines: int = 0
    cut: int = 0
    first_cut: list[int] = field(default_factory=list)

    def add(self, found: Iterable[Translation]) -> None:
        """Counts the next lines."""
        for translation in found:
            self.lines += 1
            if translation.cut:
                self.cut += 1
                if len(self.first_cut) < _CUT_LINES_NAMED:
                    self.first_cut.append(self.lines)

    def cut_lines(self) -> str:
        """Says how many lines were cut, and which."""
        named = ", ".join(f"{number:,}" for number in self.first_cut)
        more = " and others" if self.cut > len(self.first_cut) else ""
        return f"{self.cut:,} of {self.lines:,} lines (number {named}{more})"


def translate_windows(
    translator: Translator | Parser | TermTranslator,
    lines: Iterable[str],
    done: Done,
    *,
    batch_size: int,
    window: int,
    record: Record,
    progress: Callable[[int, int], object] | None = None,
    prefixes: Iterable[str] | None = None,
    align: Align | None = None,
) -> Iterator[str]:
    """Translates a text from where it was left.

    Args:
        translator: or a parser, whose translations are trees.
        lines: the whole text.
        done: how far the translation is; updated before each window is yielded.
        batch_size: sentences translated at once.
        window: lines read at once, at most, and sorted by length.
        record: spells the translation of a line.
        progress: as in `Translator.translate_window`.
        prefixes: how the translations of the whole text begin; None: as they like.
        align: aligns the words of each line and its translation, if asked for.

    Yields:
        The records of each window, the same wherever the translation was left.

    Raises:
        UserError: there are fewer prefixes than lines, or more.
    """
    begun = None if prefixes is None else itertools.islice(prefixes, done.lines, None)
    for part in windows(itertools.islice(lines, done.lines, None), window):
        beginnings = None if begun is None else list(itertools.islice(begun, len(part)))
        if beginnings is not None and len(beginnings) < len(part):
            raise UserError(
                f"--prefix_file ends after line {done.lines + len(beginnings):,}, the "
                "input goes on; give a line, empty or not, for every line"
            )
        found = translator.translate_window(part, batch_size, progress, beginnings)
        if align is not None:
            alignments = align(part, [each.text for each in found])
            found = [
                each._replace(alignment=line)
                for each, line in zip(found, alignments, strict=True)
            ]
        text = "".join(record(n, each) for n, each in enumerate(found, done.lines))
        done.add(found)
        yield text
    if begun is not None and next(begun, None) is not None:
        raise UserError(
            f"--prefix_file goes on after line {done.lines:,}, where the input ends; "
            "give a line, empty or not, for every line"
        )


def text_record(number: int, found: Translation) -> str:
    """Spells a translation as its text, with `|||` and its alignment if it has one.

    Marian writes the same.
    """
    if found.alignment is None:
        return f"{found.text}\n"
    return f"{found.text} ||| {found.alignment}\n"


def scored_record(number: int, found: Translation) -> str:
    """Spells a translation as its score, a tab and its text."""
    return f"{found.score:.6f}\t{text_record(number, found)}"


def nbest_record(number: int, found: Translation) -> str:
    """Spells a list of hypotheses in the format of Moses (manual, "n-best lists").

    A line has the number of the input's line, from 0; the text, which may hold `|||`
    itself; the features, here the log probability; the score.
    """
    best = ScoredText(found.text, found.score, found.tokens, found.log_prob)
    return "".join(
        f"{number} ||| {each.text} ||| LogProb= {each.log_prob:.6f} "
        f"||| {each.score:.6f}\n"
        for each in (best, *found.others)
    )
