"""Tests of the pairs of TMX files."""

import pytest

from t2t_repro.formats.pairs import Pair, read_pairs
from t2t_repro.system.errors import UserError

HEADER = '<header srclang="*all*" datatype="plaintext"/>'


def write(tmp_path, *units, start='<?xml version="1.0"?>\n', encoding="utf-8"):
    """Writes a file and returns its path."""
    units = "\n".join(f"<tu>{unit}</tu>" for unit in units)
    text = f'{start}<tmx version="1.4">{HEADER}<body>\n{units}\n</body></tmx>\n'
    path = tmp_path / "memory.tmx"
    path.write_bytes(text.encode(encoding))
    return path


def variants(*texts):
    """Returns the variants of a unit from (language, markup)."""
    return "".join(
        f'<tuv xml:lang="{lang}"><seg>{markup}</seg></tuv>' for lang, markup in texts
    )


def texts(path, source_lang="en", target_lang="de"):
    return [pair[:2] for pair in read_pairs(path, source_lang, target_lang)]


def test_pairs_have_their_place_and_variants_are_counted(tmp_path):
    path = write(
        tmp_path,
        variants(("de-AT", "Servus"), ("en", "Hi")),
        variants(("en", "No German")),
        variants(("de-DE", "Ja"), ("en", "Yes")),
    )
    reports = []
    pairs = list(read_pairs(path, "en", "de", report=reports.append))
    assert pairs == [
        Pair("Hi", "Servus", "unit 1, line 3"),
        Pair("Yes", "Ja", "unit 3, line 5"),
    ]
    assert reports == ["memory.tmx: 2 pairs of 3 units (en 2, de-AT 1, de-DE 1)"]


def test_an_equal_code_wins_over_an_earlier_variety(tmp_path):
    unit = variants(("en-AU", "au"), ("EN_gb", "gb"), ("en", "en"), ("de-CH", "ch"))
    path = write(tmp_path, unit)
    assert texts(path) == [("en", "ch")]
    assert texts(path, "en-GB") == [("gb", "ch")]
    assert texts(path, "en-au", "en-gb") == [("au", "gb")]
    with pytest.raises(UserError, match="languages of the file: EN_gb, de-CH, en, en-"):
        texts(path, "en-US")


def test_the_first_variety_with_text_is_read(tmp_path):
    unit = variants(("en-US", " "), ("en-GB", "gb"), ("en-AU", "au"), ("de", "de"))
    assert texts(write(tmp_path, unit)) == [("gb", "de")]


def test_codes_are_not_text_but_highlighted_words_are(tmp_path):
    markup = (
        '<it pos="begin">[i]</it>The <bpt i="1">[a "<sub>Title <ph>x</ph></sub>"]</bpt>'
        '<hi>red <ph/>house</hi><ept i="1">[/a]</ept>\n  is<ut>{\\b}</ut> old.<!-- -->'
    )
    unit = variants(("en", markup), ("de", "&lt;b&gt; &amp;amp; Das\u00a0Haus"))
    expected = ("The red house is old.", "<b> &amp; Das\u00a0Haus")
    assert texts(write(tmp_path, unit)) == [expected]


def test_reads_version_1_1_in_utf_16_with_an_absent_dtd(tmp_path):
    unit = variants(("EN-US", "Büro")).replace("xml:lang", "lang")
    unit += '<note lang="DE">Notiz</note><tuv lang="DE-DE"><seg>Büro</seg></tuv>'
    start = '<?xml version="1.0" encoding="utf-16"?>\r\n<!DOCTYPE tmx SYSTEM "tmx.dtd">'
    assert texts(write(tmp_path, unit, start=start, encoding="utf-16")) == [
        ("Büro", "Büro")
    ]


@pytest.mark.parametrize(
    "declaration", ['<!ENTITY a "ha"><!ENTITY b "&a;&a;">', '<!ENTITY b SYSTEM "/etc">']
)
def test_rejects_entities_of_the_document(tmp_path, declaration):
    path = write(
        tmp_path,
        variants(("en", "&b;"), ("de", "ja")),
        start=f"<!DOCTYPE tmx [{declaration}]>",
    )
    with pytest.raises(UserError, match=r"memory\.tmx: declares the entity [ab]; remo"):
        texts(path)


def test_rejects_an_undefined_entity_despite_an_absent_dtd(tmp_path):
    unit = variants(("en", "a&nbsp;b"), ("de", "ja"))
    path = write(tmp_path, unit, start='<!DOCTYPE tmx SYSTEM "tmx14.dtd">')
    with pytest.raises(UserError, match=r"unknown entity &nbsp;"):
        texts(path)


@pytest.mark.parametrize("encoding", ["utf-7", "no-such-encoding", "shift_jis"])
def test_rejects_an_unreadable_encoding(tmp_path, encoding):
    start = f'<?xml version="1.0" encoding="{encoding}"?>'
    path = write(tmp_path, variants(("en", "a"), ("de", "b")), start=start)
    with pytest.raises(UserError, match=r"memory\.tmx"):
        texts(path)


def test_rejects_a_wrong_encoding(tmp_path):
    path = write(tmp_path, variants(("en", "a"), ("de", "ü")), encoding="latin-1")
    with pytest.raises(UserError, match=r"memory\.tmx:3: .*XML error: not well-formed"):
        texts(path)
