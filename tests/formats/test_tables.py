"""Tests of the pairs of TSV, CSV and JSONL files."""

import pytest

from t2t_repro.formats.pairs import read_pairs
from t2t_repro.system.errors import UserError


def read(tmp_path, name, text, source_lang="en", target_lang="de"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8", newline="")
    return [tuple(pair) for pair in read_pairs(path, source_lang, target_lang)]


@pytest.mark.parametrize(
    ("header", "languages"),
    [
        ("id\tEN_gb\tde", ("en", "de")),
        ("note\tSource\tTarget", ("en", "de")),
        ("n\ttgt\tsrc", ("de", "en")),
        ("n\ten\tde", ("en", "de")),
    ],
)
def test_a_header_selects_columns(tmp_path, header, languages):
    row = "1\ta\tb\n" if languages == ("en", "de") else "1\tb\ta\n"
    text = f"{header}\textra\n{row}\n"
    assert read(tmp_path, "t.tsv", text) == [("a", "b", "line 2")]


def test_quotes_and_line_separators_belong_to_the_text_of_tsv(tmp_path):
    text = '"a\tb"\r\n5"\t\u2028c\u00a0d \r\n\te\r\n'
    assert read(tmp_path, "t.tsv", text) == [
        ('"a', 'b"', "line 1"),
        ('5"', "\u2028c\u00a0d", "line 2"),
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.tsv", "a\tb\nc\n", "line 2: 1 of at least 2 columns"),
        ("t.tsv", "x\tde\ten\n1\ta\n", "line 2: 2 of at least 3 columns"),
        ("t.tsv", "en\tfr\na\tb\n", "line 1: a header with en but not both languages"),
        ("t.csv", 'a,b\n"c,d\n', "line 2: not valid CSV"),
        ("t.csv", 'a,b\n"c"x,d\n', "line 2: not valid CSV"),
        ("t.csv", "a;b\n", "line 1: 1 of at least 2 columns"),
        ("t.jsonl", '{"en": "a", "de"', "line 1: not valid JSON"),
        ("t.jsonl", "[" * 100_000, "line 1: not valid JSON"),
        ("t.jsonl", '["a", "b"]', "line 1: not an object such as"),
        ("t.jsonl", '{"en": "a\\u0000", "de": "b"}', "line 1: en contains NUL"),
        ("t.jsonl", '{"en": "a", "de": "\\ud83d"}', "line 1: de contains NUL or half"),
        ("t.jsonl", '{"en": 1, "de": "b"}', "none of its 1 unit has"),
    ],
)
def test_invalid_lines_are_rejected_with_their_number(tmp_path, name, text, message):
    with pytest.raises(UserError, match=message):
        read(tmp_path, name, text)


def test_quoted_fields_of_csv_may_have_several_lines(tmp_path):
    text = 'de,en\r\n"Sag ""ja"",\r\nbitte","Say, ""yes"""\r\nb,a\r\n'
    assert read(tmp_path, "t.csv", text) == [
        ('Say, "yes"', 'Sag "ja", bitte', "line 3"),
        ("a", "b", "line 4"),
    ]


def test_keys_of_json_are_languages_or_names(tmp_path):
    text = (
        '{"source": "a", "target": "b", "score": 1}\n\n'
        '{"de_AT": "d", "en": "c \\ud83d\\ude00"}\n'
        '{"id": {}, "translation": {"fr": "x", "de": "f", "EN": "e"}}\n'
        '{"en": "no German", "de": null}\n'
    )
    assert read(tmp_path, "t.jsonl", text) == [
        ("a", "b", "line 1"),
        ("c \U0001f600", "d", "line 3"),
        ("e", "f", "line 4"),
    ]
