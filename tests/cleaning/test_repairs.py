"""Tests of the repairs: each text that a program damaged, and texts that stay."""

import pytest

from t2t_repro.cleaning.repairs import REPAIRS

BOTH = [
    ("entities", "en", "Fish &amp; chips &#163;5 &#xA3;", "Fish & chips £5 £"),
    ("entities", "de", "&quot;gr&uuml;n&quot;", '"grün"'),
    ("entities", "en", "twice encoded: &amp;lt;", "twice encoded: <"),
    ("tags", "en", 'Press <a href="x.html">this</a> <b>key</b>.', "Press this key."),
    ("tags", "en", "one<br/>two<P>three</P>", "one two three"),
    ("subwords", "en", "The low@@ er shel@@ f@@ s", "The lower shelfs"),
    ("subwords", "de", "▁Der ▁Regen schirm ▁ist ▁na ß .", "Der Regenschirm ist naß."),
    ("subwords", "en", "un￭ clear ￭.", "unclear."),
    ("tokens", "en", "We haven 't met , have we ?", "We haven't met, have we?"),
    ("tokens", "de", "Ja , gern !", "Ja, gern!"),
    ("tokens", "fr", "Non , merci .", "Non, merci."),
]
KEPT = [
    ("entities", "en", "AT&T; R&D & more"),
    ("tags", "en", "if a <b and c> d, open <file> or <user name>"),
    ("subwords", "en", "ask @@lena or a@@b"),
    ("tokens", "en", "version .5, 3 .. 4, 'tis, rock 'n' roll"),
    ("tokens", "fr", "Quoi ? Non !"),
    ("mojibake", "de", "„Ä“ und „Ü“ sind Umlaute"),
    ("mojibake", "fr", "À Évian, l'été « là-bas »"),
]


@pytest.mark.parametrize(("rule", "language", "damaged", "text"), BOTH)
def test_damaged_text_is_repaired(rule, language, damaged, text):
    assert REPAIRS[rule](damaged, language) == text


@pytest.mark.parametrize(("rule", "language", "text"), KEPT)
def test_other_text_is_kept(rule, language, text):
    assert REPAIRS[rule](text, language) == text


@pytest.mark.parametrize("codec", ["cp1252", "latin-1"])
@pytest.mark.parametrize(
    "text",
    ["Größe, Übung, weiß", "déjà vu", "5 € \u2013 “quoted” it\u2019s", "добрый день"],
)
def test_text_that_was_decoded_wrongly_is_repaired(codec, text):
    misread = "".join(
        # A lenient decoder of windows-1252 keeps the bytes that it does not define.
        bytes([byte]).decode(codec, "ignore") or chr(byte)
        for byte in text.encode("utf-8")
    )
    assert misread != text
    assert REPAIRS["mojibake"](misread, "xx") == text
