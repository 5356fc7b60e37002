"""Translation of files and streams of any size, one window of lines at a time."""

from __future__ import annotations

import hashlib
import itertools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TextIO

from t2t_repro.system.atomic_file import (
    decode_lines,
    is_special,
    iterate_lines,
    new_text_file,
    truncate_lines,
)
from t2t_repro.system.errors import UserError, format_count
from t2t_repro.system.interrupts import delay_interrupts
from t2t_repro.system.resumable_file import ResumableFile, resumable_file
from t2t_repro.texts.division import MOST_TEXT_CHARACTERS
from t2t_repro.texts.pipeline import TextTranslator
from t2t_repro.texts.translation import Hypothesis, Progress, Translation
from t2t_repro.texts.windows import windows

# A character has at most 4 bytes in UTF-8. One additional character shows that the line
# is too long; another one may be incomplete where the bytes are cut.
_MOST_BYTES = 4 * (MOST_TEXT_CHARACTERS + 2)
_LINES_NAMED = 5

Record = Callable[[int, Translation], str]
"""Formats a translation as output lines; called with the line number from 0."""

Align = Callable[[Sequence[str], Sequence[Translation]], list[Translation]]
"""Adds the alignment of each hypothesis; see `Aligner.align_hypotheses`."""


class InputText:
    """An input text.

    The constructor reads a regular file once to find invalid lines before the
    translation starts. A pipe or a terminal cannot be read twice.

    Args:
        name: File, or "-" for standard input.
        part: Index of a part of the lines, from 0, and number of parts; None: all.
        window: Number of lines of which a part has a multiple, except at the end.

    Attributes:
        first_line: Number of the first line of the part, from 0.
        lines: Number of lines of the part; None for a pipe or a terminal.
        fingerprint: SHA-256 of all lines; None for a pipe or a terminal.

    Raises:
        UserError: The file cannot be read or is not UTF-8, or a pipe is to be divided.
    """

    def __init__(
        self, name: str, part: tuple[int, int] | None = None, window: int = 1
    ) -> None:
        self.name = name
        self.lines: int | None = None
        self.fingerprint: str | None = None
        self._start: int | None = None
        self.first_line, self._end = 0, sys.maxsize
        if not self._is_file():
            if part is not None:
                raise UserError("--shard_index needs --input_file, not a pipe")
            return
        if name == "-":
            self._start = sys.stdin.buffer.tell()
        digest = hashlib.sha256()
        self.lines = 0
        for line in self._read_once():
            self.lines += 1
            digest.update(line.encode() + b"\n")
        self.fingerprint = digest.hexdigest()
        if part is not None:
            windows = -(-self.lines // window)
            begin, end = (windows * (part[0] + n) // part[1] * window for n in (0, 1))
            self.first_line, self._end = begin, min(end, self.lines)
            self.lines = self._end - begin

    def read(self) -> Iterator[str]:
        """Yields the lines, without line ends.

        Raises:
            UserError: The file cannot be read, is not UTF-8, or has changed.
        """
        digest = hashlib.sha256()
        for number, line in enumerate(self._read_once()):
            if self.fingerprint is not None:
                digest.update(line.encode() + b"\n")
            if self.first_line <= number < self._end:
                yield line
        if self.fingerprint not in (None, digest.hexdigest()):
            raise UserError(
                f"{self.name} changed while it was translated; run the command again"
            )

    def _read_once(self) -> Iterator[str]:
        if self.name != "-":
            return iterate_lines(self.name, may_be_empty=True, most_bytes=_MOST_BYTES)
        if self._start is not None:
            sys.stdin.buffer.seek(self._start)
        lines = truncate_lines(sys.stdin.buffer, _MOST_BYTES)
        return decode_lines(lines, "standard input")

    def _is_file(self) -> bool:
        try:
            file = sys.stdin.buffer.fileno() if self.name == "-" else self.name
        except OSError:  # Standard input has no file descriptor.
            return False
        return os.path.isfile(file)


class InputList(InputText):
    """Texts of a file in a format other than lines.

    Args:
        name: File.
        texts: Its texts, each in one line.
    """

    def __init__(self, name: str, texts: Sequence[str]) -> None:
        self._texts = texts
        super().__init__(name)

    def _read_once(self) -> Iterator[str]:
        return iter(self._texts)


class Stream:
    """An output that cannot be resumed; it has the interface of `ResumableFile`."""

    partial = None

    def __init__(self, file: TextIO) -> None:
        self.state: dict[str, Any] = {}
        self._file = file

    def append(self, text: str, state: Mapping[str, Any]) -> None:
        """Writes whole lines."""
        self._file.write(text)
        self._file.flush()  # The reader of a pipe may be waiting.


Output = Stream | ResumableFile


@contextmanager
def open_output(name: str, identity: Mapping[str, Any] | None) -> Iterator[Output]:
    """Opens standard output, a device, or a file that is renamed when it is complete.

    Args:
        name: File, or "-" for standard output.
        identity: Settings and inputs that determine the output (see `resumable_file`).
            None if they are unknown: an interrupted run then cannot be resumed.

    Raises:
        UserError: As in `resumable_file`.
    """
    if name == "-":
        yield Stream(sys.stdout)
    elif identity is None or is_special(name):
        with new_text_file(name) as file:
            yield Stream(file)
    else:
        with resumable_file(name, identity) as output:
            yield output


@dataclass
class TranslationState:
    """Progress of a translation, which is saved to resume it.

    Attributes:
        lines: Number of translated lines.
        cut: Number of lines that were too long and were cut.
        first_cut: Numbers of the first few of these lines, from 1.
        divided: Number of lines that were too long and were divided into sentences.
        first_divided: Numbers of the first few of these lines, from 1.
        several: Number of lines with several sentences that were translated as one.
        first_several: Numbers of the first few of these lines, from 1.
    """

    lines: int = 0
    cut: int = 0
    first_cut: list[int] = field(default_factory=list)
    divided: int = 0
    first_divided: list[int] = field(default_factory=list)
    several: int = 0
    first_several: list[int] = field(default_factory=list)

    def add(self, translations: Iterable[Translation], first_line: int = 0) -> None:
        """Adds the translations of the next lines of a text, or of its part."""
        for translation in translations:
            self.lines += 1
            for name, first in self._first().items():
                if getattr(translation, name):
                    setattr(self, name, getattr(self, name) + 1)
                    first += [first_line + self.lines] * (len(first) < _LINES_NAMED)

    def _first(self) -> dict[str, list[int]]:
        return {
            "cut": self.first_cut,
            "divided": self.first_divided,
            "several": self.first_several,
        }

    def summary(self, name: str) -> str:
        """Returns a summary of the lines that were "cut", "divided" or "several"."""
        count, first = getattr(self, name), self._first()[name]
        numbers = ", ".join(f"{number:,}" for number in first)
        more = " and others" if count > len(first) else ""
        return f"{count:,} of {self.lines:,} lines (number {numbers}{more})"


def translate_windows(
    translator: TextTranslator,
    lines: Iterable[str],
    state: TranslationState,
    *,
    batch_size: int,
    window: int,
    record: Record,
    progress: Progress = None,
    prefixes: Iterable[str] | None = None,
    align: Align | None = None,
    first_line: int = 0,
) -> Iterator[str]:
    """Translates a text, or the rest of it.

    Args:
        translator: Translates the lines.
        lines: Whole text.
        state: Progress of the translation, which starts after `state.lines` lines; it
            is updated before each window is yielded.
        batch_size: Number of sentences per batch.
        window: Maximum number of lines that are read, and sorted by length, at once.
        record: Function that formats the translation of a line.
        progress: As in `Translator.translate_window`.
        prefixes: Prefixes of all translations; None for no prefixes.
        align: Function that aligns words; None for no alignment.
        first_line: Number of the first line in the whole text.

    Yields:
        The formatted translations of each window. They do not depend on where the
        translation was interrupted.

    Raises:
        UserError: The numbers of prefixes and lines differ.
    """
    rest = None if prefixes is None else itertools.islice(prefixes, state.lines, None)
    for part in windows(itertools.islice(lines, state.lines, None), window):
        starts = None if rest is None else list(itertools.islice(rest, len(part)))
        if starts is not None and len(starts) < len(part):
            count = format_count(state.lines + len(starts), "line")
            raise UserError(
                f"--prefix_file has only {count}, fewer than the input; give one "
                "prefix (possibly empty) per line"
            )
        with delay_interrupts(progress) as report:
            translations = translator.translate_window(part, batch_size, report, starts)
        if align is not None:
            translations = align(part, translations)
        numbered = enumerate(translations, first_line + state.lines)
        text = "".join(record(n, translation) for n, translation in numbered)
        state.add(translations, first_line)
        yield text
    if rest is not None and next(rest, None) is not None:
        raise UserError(
            f"--prefix_file has more lines than the input, which has {state.lines:,}; "
            "give one prefix (possibly empty) per line"
        )


def text_record(number: int, translation: Translation) -> str:
    """Formats a translation as text, followed by `|||` and its alignment, if any.

    Marian writes the same format.
    """
    return f"{translation.text}{_format_alignment(translation.best)}\n"


def scored_record(number: int, translation: Translation) -> str:
    """Formats a translation as score, tab and text."""
    return f"{translation.score:.6f}\t{text_record(number, translation)}"


def nbest_record(number: int, translation: Translation) -> str:
    """Formats the hypotheses of a line as an n-best list of Moses (see its manual).

    Each output line contains the number of the input line, from 0; the text, which may
    itself contain `|||`; the features (the log probability); the score; and the
    alignment, if any.
    """
    return "".join(
        f"{number} ||| {each.text} ||| LogProb= {each.log_prob:.6f} "
        f"||| {each.score:.6f}{_format_alignment(each)}\n"
        for each in translation.hypotheses
    )


def _format_alignment(hypothesis: Hypothesis) -> str:
    """Formats an alignment as ` ||| ` and pairs in Pharaoh format, e.g. `0-0 1-2`."""
    if hypothesis.alignment is None:
        return ""
    return " ||| " + " ".join(f"{i}-{j}" for i, j in hypothesis.alignment)
