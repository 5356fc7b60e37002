"""XLIFF 1.x and 2.x, the exchange format of translators.

A new translation has the state "translated" and is never approved or final. Sources:
XLIFF 1.2, sections 2.3 and 2.4; XLIFF 2.1, sections 4.2 to 4.3 (OASIS).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from t2t_repro.formats.documents.document import (
    Document,
    Edit,
    Request,
    Segment,
    Text,
    make_segment,
)
from t2t_repro.formats.documents.messages import continues_always
from t2t_repro.formats.documents.xml_text import Element, elements, escape, read_xml
from t2t_repro.formats.inline_codes import XLIFF_CODES
from t2t_repro.formats.languages import base_language
from t2t_repro.system.errors import UserError

# States of targets that no one has translated or that are to be checked.
_UNFINISHED = ("new", "needs-translation", "needs-review-translation", "initial")
_HEADER = "x-gettext-domain-header"  # The header of a PO file as a unit.
_PAIRS = {"bpt": "ept", "bx": "ex", "sc": "ec", "sm": "em"}
_STATE = {"state": "translated"}
# Angular's identifiers of tags.
_ANGULAR = re.compile(r"(START|CLOSE)_(.*?)(_\d+)?")


def read_xliff(data: bytes, request: Request) -> Document:
    """Reads XLIFF; see `FORMATS`."""
    text = read_xml(data, request.path)
    segments: list[Segment] = []
    edits: list[Edit] = []
    files: dict[int, int] = {}
    for unit in elements(text.text, ("trans-unit", "unit")):
        file = _ancestor(unit, "file")
        number = files.setdefault(file.start, len(files) + 1)
        name = f"#{number}/" * (number > 1) + unit.attributes.get("id", "")
        if unit.inherited("translate") == "no":
            continue
        if unit.tag == "unit":
            languages = _ancestor(unit, "xliff"), "srcLang", "trgLang"
            found = list(_find_segments(text, unit, name, request.retranslate))
        else:
            languages = file, "source-language", "target-language"
            found = list(_find_units(text, unit, name, request.retranslate))
        segments += found
        if found:
            edits += _set_language(*languages, request)
    if not files:
        raise text.error(0, "no unit of XLIFF; is the file an XLIFF file?")
    return Document(text, segments, edits)


def _ancestor(element: Element, tag: str) -> Element:
    while element.tag != tag and element.parent is not None:
        element = element.parent
    return element


def _set_language(
    element: Element, source: str, target: str, request: Request
) -> list[Edit]:
    """Returns the edit that adds the target language, if it is missing.

    Raises:
        UserError: The document is in other languages.
    """
    attributes = element.attributes
    for name, flag, wanted in (
        (source, "source_lang", request.source_lang),
        (target, "target_lang", request.target_lang),
    ):
        codes = [base_language(code or "") for code in (attributes.get(name), wanted)]
        # Codes of two and of three letters may be of the same language.
        if codes[0] != codes[1] and [*map(len, codes)] == [2, 2]:
            raise UserError(
                f"{request.path}: {name} is {attributes[name]}, not {wanted}; choose "
                f"another model or give --{flag} {attributes[name]}"
            )
    if target in attributes or request.target_lang is None:
        return []
    return [element.set_attributes({target: request.target_lang})]


def _find_units(
    text: Text, unit: Element, name: str, retranslate: bool
) -> Iterator[Segment]:
    """Yields the segments of a `trans-unit` of XLIFF 1.x."""
    source, target = unit.find("source"), unit.find("target")
    is_header = unit.attributes.get("restype") == _HEADER
    if source is None or not source.has_text() or is_header:
        return
    seg_source = unit.find("seg-source")
    if seg_source is None or not _marks(seg_source):
        if retranslate or _is_unfinished(target):
            yield _segment(text, name, source, functools.partial(_set, unit))
        return
    yield from _segment_marks(text, unit, name, seg_source, retranslate)


def _segment_marks(
    text: Text, unit: Element, name: str, seg_source: Element, retranslate: bool
) -> Iterator[Segment]:
    """Yields the segments of a `trans-unit` that marks them in its `seg-source`."""
    target = unit.find("target")
    targets = {} if target is None else {_mid(mark): mark for mark in _marks(target)}
    contents: dict[str, str] = {}
    needed = []
    for mark in _marks(seg_source):
        own = targets.get(_mid(mark))
        if own is not None and own.has_text() and not retranslate:
            contents[_mid(mark)] = text.text[own.inner : own.inner_end]
        elif mark.has_text():
            needed.append(mark)

    def write(mark: Element, new: str) -> Iterable[Edit]:
        contents[_mid(mark)] = new
        if mark is not needed[-1]:
            return ()
        has_all = target is not None and targets.keys() >= contents.keys()
        layout = target if target is not None and has_all else seg_source
        place, parts = layout.inner, []
        for each in _marks(layout):
            filled = each.fill(contents.get(_mid(each), ""), {})
            parts += [text.text[place : each.start], filled[0].text]
            place = each.end
        return _set(unit, "".join([*parts, text.text[place : layout.inner_end]]))

    for mark in needed:
        replace = functools.partial(write, mark)
        yield _segment(text, f"{name}/{_mid(mark)}", mark, replace)


def _mid(mark: Element) -> str:
    return mark.attributes.get("mid", "")


def _marks(element: Element) -> list[Element]:
    return [
        child
        for child in element.children
        if child.tag == "mrk" and child.attributes.get("mtype") == "seg"
    ]


def _find_segments(
    text: Text, unit: Element, name: str, retranslate: bool
) -> Iterator[Segment]:
    """Yields the segments of a `unit` of XLIFF 2.x."""
    for segment in unit.children:
        source, target = segment.find("source"), segment.find("target")
        if segment.tag != "segment" or source is None or not source.has_text():
            continue
        unfinished = _is_unfinished(target) or (
            segment.attributes.get("state") == "initial"
        )
        if retranslate or unfinished:
            own = segment.attributes.get("id")
            full_name = name if own is None else f"{name}/{own}"
            yield _segment(text, full_name, source, functools.partial(_set, segment))


def _set(parent: Element, content: str) -> Iterable[Edit]:
    """Yields the edits that write the target of a `trans-unit` or `segment`."""
    target, source = parent.find("target"), parent.find("source")
    state: Mapping[str, str | None] = {}
    if parent.tag == "segment":
        # A sub-state belongs to one state.
        yield parent.set_attributes({**_STATE, "subState": None})
    else:
        state = _STATE
        source = parent.find("seg-source") or source
        if parent.attributes.get("approved") == "yes":
            yield parent.set_attributes({"approved": "no"})
    assert source is not None
    if target is not None:
        yield from target.fill(content, state)
    else:
        new = f"<{source.prefix}target></{source.prefix}target>"
        tag = "".join(f' {name}="{value}"' for name, value in state.items())
        new = new.replace(">", f"{tag}>{content}", 1)
        yield Edit(source.end, source.end, source.margin() + new)


def _is_unfinished(target: Element | None) -> bool:
    return (
        target is None
        or not target.has_text()
        or target.attributes.get("state") in _UNFINISHED
    )


def _segment(
    text: Text, name: str, source: Element, write: Callable[[str], Iterable[Edit]]
) -> Segment:
    pieces = source.pieces(XLIFF_CODES, _pair)
    return make_segment(text, name, pieces, write, escape, continues_always)


def _pair(code: Element) -> tuple[str, str]:
    """Returns the names of the pairs that a code opens and closes; "" for none."""
    attributes = code.attributes
    name = attributes.get("id", "")
    if code.tag in _PAIRS:
        return f"{_PAIRS[code.tag]} {attributes.get('rid', name)}", ""
    if code.tag in _PAIRS.values():
        start = attributes.get("startRef", attributes.get("rid", name))
        return "", f"{code.tag} {start}"
    if match := _ANGULAR.fullmatch(name):
        return (match[2], "") if match[1] == "START" else ("", match[2])
    return "", ""
