"""Pairs of gettext PO files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice

from t2t_repro.formats.pair_file import Pair, PairFile
from t2t_repro.formats.po_entries import (
    find_charset,
    find_entries,
    find_singular_forms,
)

_MOST_HEADER_LINES = 200
_LANGUAGE = re.compile(r"^Language: *(\S+)", re.MULTILINE)


def read_po(file: PairFile) -> Iterator[Pair]:
    """Yields the pairs of translated entries, one for each plural form.

    The form for the number 1 is paired with msgid, other forms with msgid_plural. Fuzzy
    and obsolete entries are skipped. The language in the header must be one of the
    wanted ones; without it, the file is assumed to be a translation into the target
    language.

    Raises UserError if a line is malformed or cannot be decoded.
    """
    language, forms = None, [True, False]
    for entry in find_entries(_decode(file), file.path):
        texts = {key: string.value for key, string in entry.strings.items()}
        if not texts["msgid"]:
            header = texts.get("msgstr", "")
            match = _LANGUAGE.search(header)
            language = match[1] if match else None
            forms = find_singular_forms(header, file.path)
            continue
        singulars = {"msgstr"} | {f"msgstr[{n}]" for n, one in enumerate(forms) if one}
        for key, target in texts.items():
            if key.startswith("msgstr"):
                source = texts.get("msgid" if key in singulars else "msgid_plural", "")
                pair = (source, "" if entry.is_fuzzy else target)
                place = f"{key}, line {entry.line}"
                if found := file.make_pair((None, language), pair, place):
                    yield found


def _decode(file: PairFile) -> Iterator[str]:
    """Yields the lines in the encoding that the header declares, else UTF-8."""
    head = list(islice(file.file, _MOST_HEADER_LINES))
    charset = find_charset(b"".join(head))
    if charset.lower().replace("-", "") == "utf8":
        charset = "utf-8-sig"
    for number, line in enumerate(chain(head, file.file), 1):
        try:
            yield line.decode(charset)
        except (UnicodeError, LookupError) as error:
            raise file.error(
                f"line {number}",
                f"cannot be decoded ({error}); correct the charset of Content-Type, or "
                "convert the file with msgconv -t UTF-8",
            ) from None
