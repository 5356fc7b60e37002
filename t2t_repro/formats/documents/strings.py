"""Files of strings for programs: JSON, and properties of Java.

Keys, numbers, addresses and identifiers stay. Sources: RFC 8259; documentation of
`java.util.Properties.load` and `java.text.MessageFormat`.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator

from t2t_repro.formats.documents.codes import Code, Piece
from t2t_repro.formats.documents.document import (
    Document,
    Edit,
    Request,
    Text,
    make_segment,
)
from t2t_repro.formats.documents.messages import has_words

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|null')
# Colors, paths, addresses, file names and identifiers.
_SYMBOL = re.compile(r"[./#$@\\~]\S*|\w+://\S*|\S*\w\.\w\S*|\w+_\w+|\d\S*")
_PROPERTY = re.compile(
    r"^[ \t\f]*(?![#!\s])(?P<key>(?:\\.|[^\\\s:=])*)[ \t\f]*[:=]?[ \t\f]*"
    r"(?P<value>(?:\\(?:\r\n|.)|[^\\\r\n])*)",
    re.DOTALL | re.MULTILINE,
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_BAD_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\(?:u(?![0-9a-fA-F]{4})|\Z)")
_CONTINUATION = re.compile(r"((?<!\\)(?:\\\\)*\\\r?\n[ \t\f]*)")
_CHARACTERS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_ESCAPES = str.maketrans(
    {value: f"\\{key}" for key, value in _CHARACTERS.items()} | {"\\": "\\\\"}
)
_ARGUMENT = re.compile(r"\{\d")  # Of a MessageFormat, in which ' quotes.
_QUOTATION = re.compile(r"('[^']+')")


def read_json(data: bytes, request: Request) -> Document:
    """Reads JSON; see `FORMATS`."""
    text = Text(data, request.path)
    check_json(text, 0, text.text)
    segments = []
    write = json_writer(text)
    for path, start, end in find_strings(text.text):
        value = json.loads(text.text[start:end]) or ""
        if _is_text(value) and not any(str(key)[:1] in ("$", "@") for key in path):
            keys = (f"[{k}]" if isinstance(k, int) else f".{k}" for k in path)
            name = "".join(keys).removeprefix(".")
            replace = functools.partial(_replace, start + len('"'), end - len('"'))
            segments.append(
                make_segment(text, name, [value], replace, write, in_place=True)
            )
    return Document(text, segments)


def check_json(text: Text, place: int, value: str) -> object:
    """Returns the value of JSON; raises UserError if it is damaged.

    Args:
        text: Text of the file.
        place: Place of the JSON in the text.
        value: The JSON.
    """
    try:
        return json.loads(value)
    except json.JSONDecodeError as error:
        raise text.error(
            place + error.pos, f"the JSON is damaged ({error.msg}); repair it"
        ) from None


def find_strings(value: str) -> Iterator[tuple[tuple[str | int, ...], int, int]]:
    """Yields the strings of valid JSON that are not keys, and the values `null`.

    Yields:
        The keys and indices that lead to the string, its start and its end, with the
        quotes.
    """
    path: list[str | int] = []
    is_key = False
    for match in _TOKEN.finditer(value):
        token = match[0]
        if token in "{[":
            path.append("" if token == "{" else 0)
            is_key = token == "{"
        elif token in "}]":
            path.pop()
            is_key = False
        elif token == ":":
            is_key = False
        elif token == ",":
            last = path[-1]
            if isinstance(last, int):
                path[-1] = last + 1
            is_key = isinstance(last, str)
        elif is_key:
            path[-1] = json.loads(token)
        else:
            yield tuple(path), match.start(), match.end()


def json_writer(text: Text) -> Callable[[str], str]:
    """Returns the function that writes a text like the strings of a file.

    The result lacks quotes.
    """
    ascii_only = text.text.isascii() and "\\u" in text.text
    slash = "\\/" if "\\/" in text.text else "/"

    def write(value: str) -> str:
        return json.dumps(value, ensure_ascii=ascii_only)[1:-1].replace("/", slash)

    return write


def read_properties(data: bytes, request: Request) -> Document:
    """Reads properties of Java, in UTF-8 or Latin-1; see `FORMATS`."""
    encoding = _guess_encoding(data)
    text = Text(data, request.path, encoding)
    ascii_only = encoding == "latin-1" or text.text.isascii()
    segments = []
    for match in _PROPERTY.finditer(text.text):
        if bad := _BAD_ESCAPE.search(match[0]):
            raise text.error(match.start() + bad.start(), "damaged escape; repair it")
        value = match["value"]
        is_message = _ARGUMENT.search(value) is not None
        pieces = list(_property_pieces(value, is_message))

        def write(new: str, is_message: bool = is_message) -> str:
            new = new.replace("'", "''") if is_message else new
            new = re.sub(r"\A ", r"\\ ", new.translate(_ESCAPES))
            return _escape_characters(new) if ascii_only else new

        if _is_text("".join(each for each in pieces if isinstance(each, str))):
            name = _unescape(match["key"])
            replace = functools.partial(_replace, *match.span("value"))
            segments.append(
                make_segment(text, name, pieces, replace, write, in_place=True)
            )
    return Document(text, segments)


def _replace(start: int, end: int, new: str) -> list[Edit]:
    return [Edit(start, end, new)]


def _is_text(value: str) -> bool:
    return has_words(value) and not _SYMBOL.fullmatch(value.strip())


def _guess_encoding(data: bytes) -> str:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def _property_pieces(value: str, is_message: bool) -> Iterator[Piece]:
    """Yields the text and the codes of a value: continuations and quotations."""
    for number, part in enumerate(_CONTINUATION.split(value)):
        if number % 2:
            yield Code(part)
        elif not is_message:
            yield _unescape(part)
        else:
            for n, piece in enumerate(_QUOTATION.split(part.replace("''", "\0"))):
                piece = piece.replace("\0", "''" if n % 2 else "'")
                yield Code(piece) if n % 2 else _unescape(piece)


def _unescape(value: str) -> str:
    def character(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] == "u":
            return chr(int(code[1:], 16))
        return _CHARACTERS.get(code, code)

    value = _ESCAPE.sub(character, value)
    # Two escapes may be the surrogates of one character.
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _escape_characters(value: str) -> str:
    units = value.encode("utf-16-be")
    codes = (int.from_bytes(units[n : n + 2]) for n in range(0, len(units), 2))
    return "".join(chr(code) if code < 128 else f"\\u{code:04x}" for code in codes)
