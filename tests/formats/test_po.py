"""Tests of the pairs of PO files."""

import polib
import pytest

from t2t_repro.formats.pairs import read_pairs
from t2t_repro.system.errors import UserError

HEADER = r"""# Invented.
msgid ""
msgstr ""
"Last-Translator: Zo\xeb <z@example.org>\n"
"Language: %s\n"
"Content-Type: text/plain; charset=%s\n"
"Plural-Forms: %s;\n"

"""
POLISH = "nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 ? 1 : 2)"
ENTRIES = r"""
#. a comment
#: main.c:3
#, c-format, fuzzy
#| msgid "Old"
msgid "Fuzzy %d"
msgstr "x"
#, fuzzy
#~ msgid "Obsolete"
#~ msgstr "x"
msgctxt "menu"
msgid ""
"A \"quoted\"\tword,\\ "
"two lines.\n"
msgstr "Ein\u2028 Wort"

#, c-format
msgid "%d egg"
msgid_plural "%d eggs"
msgstr[0] "jedno"
msgstr[1] "kilka"
msgstr[2] "wiele"

msgid "Untranslated"
msgstr ""
"""


def read(tmp_path, text, encoding="utf-8", languages=("en", "pl")):
    path = tmp_path / "a.po"
    path.write_bytes(text.encode(encoding))
    return [tuple(pair) for pair in read_pairs(path, *languages)]


def test_pairs_of_translated_entries(tmp_path):
    text = HEADER % ("pl_PL", "UTF-8", POLISH) + ENTRIES.replace(r"\u2028", "\u2028")
    assert read(tmp_path, text) == [
        ('A "quoted" word,\\ two lines.', "Ein\u2028 Wort", "msgstr, line 19"),
        ("%d egg", "jedno", "msgstr[0], line 26"),
        ("%d eggs", "kilka", "msgstr[1], line 26"),
        ("%d eggs", "wiele", "msgstr[2], line 26"),
    ]


def test_texts_are_those_of_polib(tmp_path):
    text = HEADER % ("pl", "UTF-8", POLISH) + ENTRIES.replace(r"\u2028", " ")
    expected = []
    for entry in polib.pofile(text):
        if entry.translated() and not entry.obsolete:
            forms = entry.msgstr_plural or {0: entry.msgstr}
            for index, target in forms.items():
                source = entry.msgid_plural if index else entry.msgid
                expected.append([" ".join(s.split()) for s in (source, target)])
    assert [list(pair[:2]) for pair in read(tmp_path, text)] == expected


@pytest.mark.parametrize(
    ("forms", "expected"),
    [
        ("nplurals=1; plural=0", ["eggs", "eggs"]),
        ("nplurals=2; plural=(n == 1)", ["eggs", "egg"]),
    ],
)
def test_the_form_for_one_belongs_to_the_singular(tmp_path, forms, expected):
    text = HEADER % ("pl", "iso-8859-1", forms)
    text += 'msgid "egg"\nmsgid_plural "eggs"\nmsgstr[0] "a"\nmsgstr[1] "b"\n'
    text = text.replace(r"\xeb", "\xeb")
    pairs = read(tmp_path, text, "iso-8859-1")
    assert [pair[0] for pair in pairs] == expected


def test_the_language_of_the_header_determines_the_direction(tmp_path):
    text = HEADER % ("pl", "UTF-8", POLISH) + 'msgid "Yes"\nmsgstr "Tak"\n'
    assert read(tmp_path, text, languages=("pl", "en"))[0][:2] == ("Tak", "Yes")
    with pytest.raises(UserError, match="languages of the file: pl"):
        read(tmp_path, text, languages=("en", "de"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('msgid "a"\nmsgstr "b', "a.po:2: not valid in a PO file, or incomplete"),
        ('msgid "a"\n', "a.po:1: the entry has no msgstr"),
        ('msgid "a"\nmsgid "b"\nmsgstr ""', "a.po:2: a string at the wrong place"),
        ('msgstr "b"', "a.po:1: a string at the wrong place"),
        ('"b"', "a.po:1: a string at the wrong place"),
        (HEADER % ("pl", "no-such", POLISH), "line 1: cannot be decoded"),
        (
            HEADER % ("pl", "UTF-8", "nplurals=2; plural=(n"),
            "expression \\(n in Plural",
        ),
    ],
)
def test_malformed_files_are_rejected_with_the_line(tmp_path, text, message):
    with pytest.raises(UserError, match=message):
        read(tmp_path, text)
