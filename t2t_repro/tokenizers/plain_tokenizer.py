r"""Tokenizers in plain Python, for clients of exports that take and return ids.

Exports contain a copy of this file next to their vocabulary. It therefore requires only
Python 3.10, and the package `sentencepiece` for vocabularies of SentencePiece and of
Marian models:

    tokenizer = load("exported/1/assets.extra/tokenizer")
    ids = tokenizer.encode("half past four")
    text = tokenizer.decode(ids)

The ids and texts equal those of the other tokenizers in t2t_repro. `split_words` to
`unescape` implement the rules in `word_pieces.py`.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

PAD_ID, EOS_ID = 0, 1
# Exports that take text ignore later characters, too.
_MOST_CHARACTERS = 65_536
# Code point that replaces an escape of an invalid code point, as in tensor2tensor.
_UNDEFINED = chr(0x3013)
_LABEL = r"^>>[^<>\t\n\f\r ]+<<"


class Side(Protocol):
    """Vocabulary of one side; ids are between EOS and `size`."""

    size: int

    def split(self, text: str) -> list[str]:
        """Splits a text into words whose ids do not depend on each other."""
        return [text]

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text of any length, or of one of its words."""
        ...

    def decode(self, ids: list[int]) -> str:
        """Returns the text of ids."""
        ...

    def note(self, text: str) -> str:
        """Returns a note about a text's label, "" without one."""
        return ""


class PlainTokenizer:
    """Tokenizer of a vocabulary file, without TensorFlow.

    Args:
        source: Vocabulary of the source.
        target: Vocabulary of the target.

    Attributes:
        source: Vocabulary of the source.
        target: Vocabulary of the target.
    """

    def __init__(self, source: Side, target: Side) -> None:
        self.source, self.target = source, target

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of ids of source and target."""
        return self.source.size, self.target.size

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a source text, EOS included; only EOS for a blank text."""
        return self._encode(self.source, text)

    def encode_target(self, text: str) -> list[int]:
        """Returns the ids of a translation, EOS included."""
        return self._encode(self.target, text)

    def decode(self, ids: Iterable[int]) -> str:
        """Returns the translation before the first EOS, with spaces for line breaks.

        Padding and ids outside of the vocabulary are ignored.
        """
        before_end = itertools.takewhile(lambda each: each != EOS_ID, map(int, ids))
        inside = [each for each in before_end if PAD_ID < each < self.target.size]
        return re.sub("[\r\n]", " ", self.target.decode(inside))

    def note(self, text: str) -> str:
        """Returns a note about a label that selects no language, "" without one."""
        return self.source.note(text)

    @staticmethod
    def _encode(side: Side, text: str) -> list[int]:
        text = text[:_MOST_CHARACTERS]
        return [*(side.encode(text) if text.strip() else []), EOS_ID]


def load(path: str | os.PathLike[str]) -> PlainTokenizer:
    """Loads a vocabulary file, or the only one in a folder.

    Raises:
        OSError: The file cannot be read.
        ValueError: The folder does not contain exactly one vocabulary file, or the file
            is damaged.
    """
    path = Path(path)
    if path.is_dir():
        found = [each for each in path.iterdir() if each.suffix in _SIDES]
        if len(found) != 1:
            kinds = ", ".join(f"*{suffix}" for suffix in _SIDES)
            raise ValueError(f"{path} has {len(found)} vocabulary files ({kinds})")
        (path,) = found
    if path.suffix not in _SIDES:
        raise ValueError(f"{path} does not end in {', '.join(_SIDES)}")
    try:
        return parse(path.read_bytes(), path.suffix)
    except (RuntimeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a vocabulary, or damaged: {error}") from None


def parse(contents: bytes, suffix: str) -> PlainTokenizer:
    """Creates the tokenizer of the contents of a valid vocabulary file."""
    return PlainTokenizer(*_SIDES[suffix](contents))


def pad(rows: Sequence[Sequence[int]]) -> list[list[int]]:
    """Pads rows of ids to the same length."""
    width = max(map(len, rows), default=0)
    return [[*row, *[PAD_ID] * (width - len(row))] for row in rows]


def is_alphanumeric(character: str) -> bool:
    """Returns whether a character is a letter (category L) or number (category N)."""
    return unicodedata.category(character)[0] in "LN"


def split_runs(text: str) -> list[str]:
    """Splits a text into alternating runs of alphanumeric and other characters."""
    return re.findall(r"[^\W_]+|[\W_]+", text)


def split_words(text: str) -> list[str]:
    """Splits a text into its runs, without those of a single space.

    Keeps a single space at the beginning or end of the text.
    """
    runs = split_runs(text)
    last = len(runs) - 1
    return [run for index, run in enumerate(runs) if run != " " or index in (0, last)]


def spell_character(character: str, alphabet: Iterable[str]) -> str:
    r"""Returns a character, or its escape if it is not in the alphabet of pieces.

    A line end is always escaped, because the vocabulary file has one piece per line.
    """
    if character == "\\":
        return "\\\\"
    if character == "_":
        return "\\u"
    if character in alphabet and character != "\n":
        return character
    return f"\\{ord(character)};"


def spell_word(word: str, alphabet: Iterable[str]) -> str:
    """Returns a word with escapes and the final `_`."""
    return "".join(spell_character(character, alphabet) for character in word) + "_"


def piece_starts(word: str, pieces: Collection[str], longest: int) -> Iterator[int]:
    """Yields the start of each piece of a spelled word, by longest match."""
    start = 0
    while start < len(word):
        yield start
        stop = min(len(word), start + longest)
        while word[start:stop] not in pieces:
            stop -= 1
        start = stop


def unescape(word: str) -> str:
    """Replaces the escapes in a word without its final `_`."""

    def character(match: re.Match[str]) -> str:
        if match[1] is None:
            return "_" if match[0] == "\\u" else "\\"
        code = int(match[1].lstrip("0")[:8] or "0")
        is_valid = code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF
        return chr(code) if is_valid else _UNDEFINED

    return re.sub(r"\\u|\\\\|\\([0-9]+);", character, word)


def unquote(line: str) -> str:
    """Returns the piece in a line of a vocabulary of word pieces."""
    piece = line.rstrip()
    is_quoted = len(piece) > 1 and piece[0] == piece[-1] and piece[0] in "'\""
    return piece[1:-1] if is_quoted else piece


class _WordPieces(Side):
    """tensor2tensor's word pieces."""

    def __init__(self, contents: bytes) -> None:
        lines = contents.decode("utf-8").removesuffix("\n").split("\n")
        self._pieces = [unquote(line) for line in lines]
        self.size = len(self._pieces)
        # A duplicate piece gets the higher id, as in tensor2tensor.
        self._ids = {piece: n for n, piece in enumerate(self._pieces) if n > EOS_ID}
        self._alphabet = {piece for piece in self._ids if len(piece) == 1}
        if not self._alphabet.issuperset("\\_u;0123456789"):
            raise ValueError("pieces of escapes are missing")
        self._longest = max(map(len, self._ids))

    def split(self, text: str) -> list[str]:
        # `WordPieceTokenizer` keeps spaces if the vocabulary lacks their piece.
        return split_words(text) if " " in self._alphabet else split_runs(text)

    def encode(self, text: str) -> list[int]:
        ids = []
        for word in self.split(text):
            spelled = spell_word(word, self._alphabet)
            starts = [*piece_starts(spelled, self._ids, self._longest), len(spelled)]
            ids += [self._ids[spelled[a:b]] for a, b in itertools.pairwise(starts)]
        return ids

    def decode(self, ids: list[int]) -> str:
        spelled = "".join(self._pieces[each] for each in ids)
        text, after_alphanumeric = "", False
        for word in map(unescape, filter(None, spelled.split("_"))):
            alphanumeric = is_alphanumeric(word[0])
            # Restores the space that encoding dropped.
            text += " " * (alphanumeric and after_alphanumeric) + word
            after_alphanumeric = alphanumeric
        return text


class SentencePieces(Side):
    """Pieces of a SentencePiece model, which is in `contents`."""

    def __init__(self, contents: bytes) -> None:
        from sentencepiece import SentencePieceProcessor

        self.contents = contents
        self._model = SentencePieceProcessor(model_proto=contents)
        self.size = self._model.vocab_size()

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text."""
        return [int(each) for each in self._model.encode(text)]

    def decode(self, ids: list[int]) -> str:
        """Returns the text of ids."""
        return str(self._model.decode(ids))


class _MarianPieces(Side):
    """Pieces of a SentencePiece model, or of subword-nmt, that a vocabulary numbers."""

    def __init__(
        self,
        model: str | None,
        pieces: list[str],
        labels: bool,
        start: str | None,
        added: dict[str, bool],
    ) -> None:
        self._model = None
        if model is not None:
            from sentencepiece import SentencePieceProcessor

            self._model = SentencePieceProcessor(model_proto=base64.b64decode(model))
        self._labels = labels
        longest_first = sorted(added, key=len, reverse=True)
        self._whole = "|".join([*[_LABEL] * labels, *map(re.escape, longest_first)])
        words = {each: "" if added[each] else f"\u2581{each}" for each in added}
        self._spellings = [words.get(piece, piece) for piece in pieces]
        self._ids = {piece: n for n, piece in enumerate(pieces) if n > EOS_ID}
        self.size, self._unknown = len(pieces), self._ids["<unk>"]
        self._start = [] if start is None else [self._ids[start]]

    def encode(self, text: str) -> list[int]:
        parts = re.split(f"({self._whole})", text) if self._whole else [text]
        pieces: list[str] = []
        # Labels and added pieces are between the other parts.
        for n, part in enumerate(parts):
            if n % 2:
                pieces.append(part)
            elif self._model is None:
                # As in the graph, other white space is part of a piece.
                pieces += re.findall(r"[^ \t\n\v\f\r]+", part)
            else:
                pieces += self._model.encode(part, out_type=str)
        return self._start + [self._ids.get(each, self._unknown) for each in pieces]

    def decode(self, ids: list[int]) -> str:
        spelled = [self._spellings[each] for each in ids]
        if self._model is None:
            return " ".join(spelled)
        text = str(self._model.decode_pieces(spelled))
        return text.replace("\u2581", " ").strip(" \t\n\v\f\r")

    def note(self, text: str) -> str:
        label = re.match(_LABEL, text.lstrip()) if self._labels else None
        if label is None:
            return ""
        if not text.startswith(label[0]):
            return f"label that is read as text: {label[0]}"
        known = label[0] in self._ids
        return "" if known else f"label that is not in the vocabulary: {label[0]}"


def _word_pieces(contents: bytes) -> tuple[Side, Side]:
    return (_WordPieces(contents),) * 2


def _sentence_pieces(contents: bytes) -> tuple[Side, Side]:
    return (SentencePieces(contents),) * 2


def _marian_pieces(contents: bytes) -> tuple[Side, Side]:
    fields = json.loads(contents)
    source, target = fields["source_pieces"], fields["target_pieces"]
    labels = fields.get("labels", True)
    start, added = fields.get("source_start"), fields.get("added", {})
    return (
        _MarianPieces(fields["source_model"], source, labels, start, added),
        _MarianPieces(fields["target_model"], target or source, labels, None, added),
    )


def _separate_vocabularies(contents: bytes) -> tuple[Side, Side]:
    fields = json.loads(contents)
    read = {".model": SentencePieces, ".subwords": _WordPieces}[fields["kind"]]
    source, target = (base64.b64decode(fields[side]) for side in ("source", "target"))
    return read(source), read(target)


_SIDES = {
    ".model": _sentence_pieces,
    ".subwords": _word_pieces,
    ".sides": _separate_vocabularies,
    ".marian": _marian_pieces,
}
"""Function that reads a vocabulary file, by the suffix of its name."""
