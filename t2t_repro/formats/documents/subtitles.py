"""SubRip (SRT) and WebVTT subtitles.

Numbers, names, times, settings and other blocks stay. The text of a sentence is divided
over the cues and lines of its source. Source: WebVTT, sections "File structure" and
"Cue payload" (W3C); SubRip has no specification.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from t2t_repro.formats.documents.codes import Code, Piece
from t2t_repro.formats.documents.document import (
    Document,
    Edit,
    Request,
    Segment,
    Text,
)
from t2t_repro.formats.documents.messages import (
    Sentence,
    continues_always,
    group_lines,
)

_BLOCK = re.compile(r"^(?:[^\S\r\n]*\S[^\r\n]*(?:\r?\n|\Z))+", re.MULTILINE)
_LINE = re.compile(r"[^\r\n]+")
_TIMES = re.compile(
    r"\s*(?:\d+:)?\d?\d:\d\d[,.]\d{1,3}\s*-->\s*(?:\d+:)?\d?\d:\d\d[,.]\d{1,3}(?!\d)"
)
_SRT_TAG = re.compile(r"(</?[A-Za-z][^<>]*>|\{\\[^{}]*\})")
_VTT_TAG = re.compile(r"(<[^<>]*>)")
_TAG_NAME = re.compile(r"<(/?)([a-z]+)")


class _Line(NamedTuple):
    """Line of a cue: its cue's name, its span, its text, and if it is the first."""

    cue: str
    start: int
    end: int
    text: str
    is_first: bool


def read_srt(data: bytes, request: Request) -> Document:
    """Reads SubRip subtitles; see `FORMATS`."""
    text = Text(data, request.path)
    return _read(text, _SRT_TAG, str, lambda line: line.replace("-->", "->"))


def read_vtt(data: bytes, request: Request) -> Document:
    """Reads WebVTT subtitles; see `FORMATS`."""
    text = Text(data, request.path)
    if not re.match(r"WEBVTT(\s|\Z)", text.text):
        raise text.error(0, "the first line of a WebVTT file must begin with WEBVTT")
    return _read(text, _VTT_TAG, html.unescape, _escape_vtt)


def _escape_vtt(line: str) -> str:
    line = line.replace("&", "&amp;").replace("<", "&lt;")
    return line.replace("-->", "--&gt;")


def _read(
    text: Text,
    tag: re.Pattern[str],
    unescape: Callable[[str], str],
    escape: Callable[[str], str],
) -> Document:
    lines = list(_find_lines(text, tag, unescape))
    sizes = group_lines([line.text for line in lines], text.codes, continues_always)
    groups = []
    for size in sizes:
        groups.append(lines[:size])
        del lines[:size]
    segments = []
    for group in groups:
        sentence = Sentence([line.text for line in group], text.codes)
        if sentence.text:
            segments.append(_segment(text, group, sentence, escape))
    return Document(text, segments)


def _segment(
    text: Text, lines: list[_Line], sentence: Sentence, escape: Callable[[str], str]
) -> Segment:
    def edit(translations: Iterator[str]) -> Iterable[Edit]:
        for line, new in zip(lines, sentence.divide(next(translations)), strict=True):
            if new == line.text:
                continue
            written = text.codes.restore(new, escape)
            start = line.start
            if not line.is_first:  # An empty line would end the cue.
                start -= len(text.newline)
                written = f"{text.newline}{written}" if written.strip() else ""
            yield Edit(start, line.end, written)

    name = "+".join(dict.fromkeys(line.cue for line in lines)).replace("+#", "+")
    source = text.codes.show(sentence.text)
    return Segment(name, source, [sentence.text], edit)


def _find_lines(
    text: Text, tag: re.Pattern[str], unescape: Callable[[str], str]
) -> Iterator[_Line]:
    """Yields the lines of the cues."""
    number = 0
    name = ""
    for block in _BLOCK.finditer(text.text):
        lines = [
            (block.start() + match.start(), match[0])
            for match in _LINE.finditer(block[0])
        ]
        times = next((n for n, (_, line) in enumerate(lines[:2]) if "-->" in line), -1)
        if times >= 0:
            if not _TIMES.match(lines[times][1]):
                raise text.error(lines[times][0], "the times of the cue are damaged")
            number += 1
            name = lines[0][1].strip() if times else f"#{number}"
        elif re.match(r"(WEBVTT|NOTE|STYLE|REGION)(\s|\Z)", lines[0][1]):
            continue
        elif not number or lines[0][1].strip().isdigit():
            raise text.error(lines[0][0], "a cue without times; the file is damaged")
        # A block without times continues the last cue after an empty line.
        for n, (start, line) in enumerate(lines[times + 1 :]):
            if "-->" in line:
                raise text.error(start, "no empty line before a cue; insert it")
            pieces = enumerate(tag.split(line))
            marked = text.codes.mark(
                _code(each) if n % 2 else unescape(each) for n, each in pieces
            )
            yield _Line(name, start, start + len(line), marked, n == 0)
    if not number:
        raise text.error(0, "no cue with times; is the file a subtitle file?")


def _code(tag: str) -> Piece:
    match = _TAG_NAME.match(tag)
    if match is None:
        return Code(tag)
    return Code(tag, closes=match[2]) if match[1] else Code(tag, opens=match[2])
