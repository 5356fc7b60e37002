"""Elements of an XML document with their places in its text, unit by unit."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from xml.sax.saxutils import quoteattr

from t2t_repro.formats.documents.codes import Code, Piece
from t2t_repro.formats.documents.document import Edit, Text
from t2t_repro.formats.xml_stream import Handler, local_name, parse

_DECLARED = re.compile(rb"<\?xml[^>]*?encoding\s*=\s*[\"']([\w.-]+)")
_QUOTED = r"\"[^\"]*\"|'[^']*'"
_TOKEN = re.compile(
    r"<!--.*?-->|<\?.*?\?>|<!\[CDATA\[(?P<cdata>.*?)\]\]>"
    rf"|<!DOCTYPE(?:[^\[>\"']|{_QUOTED})*(?:\[.*?\]\s*)?>"
    rf"|<(?P<close>/?)(?P<name>[^\s/>]+)(?:[^>\"']|{_QUOTED})*?(?P<empty>/?)>",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(rf"\s([^\s=]+)\s*=\s*({_QUOTED})", re.DOTALL)
_REFERENCE = re.compile(r"&(#x?[0-9a-fA-F]+|\w+);")
_CHARACTERS = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}


class Element:
    """An element of a document.

    Attributes:
        document: Text of the document.
        tag: Name without the prefix of a namespace.
        prefix: Prefix of the namespace, with its colon; "" for none.
        start: Place of the start tag.
        inner: Place after the start tag.
        inner_end: Place of the end tag; `inner` of an empty element.
        end: Place after the end tag.
        parent: Parent; None for the root.
        children: Child elements.
    """

    def __init__(
        self, document: str, match: re.Match[str], parent: Element | None
    ) -> None:
        self.document, self.parent = document, parent
        self.tag = local_name(match["name"])
        self.prefix = match["name"].removesuffix(self.tag)
        self.start, self.inner = match.span()
        self.inner_end = self.end = self.inner
        self.children: list[Element] = []

    @property
    def attributes(self) -> dict[str, str]:
        """Values of the attributes, by name with the prefix of the namespace."""
        start_tag = self.document[self.start : self.inner]
        found = _ATTRIBUTE.findall(start_tag)
        return {name: _decode(value[1:-1]) for name, value in found}

    @property
    def is_empty(self) -> bool:
        """Whether the element is an empty-element tag, such as `<target/>`."""
        return self.inner == self.end

    def find(self, tag: str) -> Element | None:
        """Returns the first child with a name, or None."""
        return next((child for child in self.children if child.tag == tag), None)

    def inherited(self, name: str) -> str | None:
        """Returns an attribute of the nearest element that has it, or None."""
        element: Element | None = self
        while element is not None:
            if name in element.attributes:
                return element.attributes[name]
            element = element.parent
        return None

    def margin(self) -> str:
        """Returns the white space before the element."""
        start = self.start
        while self.document[start - 1].isspace():
            start -= 1
        return self.document[start : self.start]

    def pieces(
        self, codes: Collection[str], pair: Callable[[Element], tuple[str, str]]
    ) -> Iterator[Piece]:
        """Yields the text and the codes of the content.

        Args:
            codes: Names of elements whose content is not text. The tags of other
                elements are codes, and their content is text unless it is protected
                (`translate="no"`, `mtype="protected"`).
            pair: Function from such an element to the names of the pairs that it opens
                and closes.
        """
        place = self.inner
        for child in self.children:
            yield _decode(self.document[place : child.start])
            place = child.end
            written = self.document[child.start : child.end]
            if child.tag in codes or child.is_empty:
                yield Code(written, *pair(child))
            elif _is_protected(child):
                inner = child.pieces(codes, pair)
                shown = (each for each in inner if isinstance(each, str))
                yield Code(written, shown="".join(shown))
            else:
                name = f"element {child.start}"
                yield Code(self.document[child.start : child.inner], opens=name)
                yield from child.pieces(codes, pair)
                yield Code(self.document[child.inner_end : child.end], closes=name)
        yield _decode(self.document[place : self.inner_end])

    def has_text(self) -> bool:
        """Returns whether the element has content other than white space."""
        return bool(self.document[self.inner : self.inner_end].strip())

    def set_attributes(self, values: Mapping[str, str | None]) -> Edit:
        """Returns the change of attributes; None removes one."""
        tag = self.document[self.start : self.inner]
        for name, value in values.items():
            new = "" if value is None else f" {name}={quoteattr(value)}"
            written = rf"\s{re.escape(name)}\s*=\s*(?:{_QUOTED})"
            place = re.search(written, tag) or re.search(r"(?=\s*/?>\Z)", tag)
            assert place is not None
            tag = tag[: place.start()] + new + tag[place.end() :]
        return Edit(self.start, self.inner, tag)

    def fill(self, content: str, values: Mapping[str, str | None]) -> list[Edit]:
        """Returns the change of the content, which is XML, and of attributes."""
        tag = re.sub(r"\s*/>\Z", ">", self.set_attributes(values).text)
        end_tag = f"</{self.prefix}{self.tag}>"
        return [Edit(self.start, self.end, f"{tag}{content}{end_tag}")]


def read_xml(data: bytes, path: Path) -> Text:
    """Returns the text of a well-formed document.

    Raises:
        UserError: See `xml_stream.parse` and `Text`.
    """
    for _ in parse(io.BytesIO(data), path, Handler()):
        pass
    declared = _DECLARED.match(data)
    encoding = declared[1].decode() if declared else "utf-8"
    return Text(data, path, encoding, "xmlcharrefreplace")


def elements(document: str, tags: Collection[str]) -> Iterator[Element]:
    """Yields the elements with these names when they end.

    Memory holds only the ancestors of an element and their other children.

    Args:
        document: Text of a well-formed document.
        tags: Names of elements, which are not children of each other.
    """
    current: Element | None = None
    for match in _TOKEN.finditer(document):
        if match["name"] is None:
            continue
        if not match["close"]:
            current = Element(document, match, current)
            if not match["empty"]:
                continue
        assert current is not None
        if match["close"]:
            current.inner_end, current.end = match.span()
        if current.tag in tags:
            yield current
        elif current.parent is not None:
            current.parent.children.append(current)
        current = current.parent


def escape(text: str) -> str:
    """Returns text as XML writes it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _decode(written: str) -> str:
    """Returns the text of XML without elements; comments are dropped."""
    parts, end = [], 0
    for match in _TOKEN.finditer(written):
        parts += [_dereference(written[end : match.start()]), match["cdata"] or ""]
        end = match.end()
    return "".join([*parts, _dereference(written[end:])])


def _dereference(written: str) -> str:
    def character(match: re.Match[str]) -> str:
        name = match[1]
        if name.startswith("#x"):
            return chr(int(name[2:], 16))
        return chr(int(name[1:])) if name[0] == "#" else _CHARACTERS[name]

    return _REFERENCE.sub(character, written)


def _is_protected(element: Element) -> bool:
    attributes = element.attributes
    return attributes.get("mtype") == "protected" or attributes.get("translate") == "no"
