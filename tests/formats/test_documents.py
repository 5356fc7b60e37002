"""Documents: texts to translate, and what a translation changes.

The expected documents are written by hand.
"""

from pathlib import Path

import pytest

from t2t_repro.formats.documents import Request, find_format, read_document
from t2t_repro.system.errors import UserError


def read(name, data, **settings):
    settings = {"source_lang": "en", "target_lang": "de"} | settings
    data = data.encode() if isinstance(data, str) else data
    return read_document(name, data, Request(Path(f"file.{name}"), **settings))


def translate(name, data, translations, **settings):
    """Returns a document, of which exactly these texts are to be translated."""
    document = read(name, data, **settings)
    assert document.texts == list(translations)
    return document.write(list(translations.values())).decode()


SUBTITLES = [
    ("{0}", {"One dog.": "Ein Hund."}, "One dog.", "Ein Hund."),
    # Dashes, brackets, notes and tags at the ends stay.
    (
        "{0}",
        {"Who?": "Wer?", "Me.": "Ich.", "thunder": "Donner"},
        "- <i>Who?</i>\n- Me.\n(thunder)\n\u266a \u266a",
        "- <i>Wer?</i>\n- Ich.\n(Donner)\n\u266a \u266a",
    ),
    # A translation that is too short for two lines has one.
    ("{0}", {"Please sit down.": "Bitte!"}, "Please\nsit down.", "Bitte!"),
    # "-->" would look like the times of a cue.
    ("{0}", {"An arrow": "Pfeil -->"}, "An arrow", "Pfeil {1}"),
]


@pytest.mark.parametrize(
    ("name", "head", "times", "arrow"),
    [
        ("srt", "1\n", "00:00:01,000 --> 00:00:02,000 X1:1", "->"),
        ("vtt", "WEBVTT\n\nNOTE Who?\n\n", "00:01.000 --> 00:02.000 line:0", "--&gt;"),
    ],
)
@pytest.mark.parametrize(("frame", "texts", "before", "after"), SUBTITLES)
def test_the_text_of_a_cue_is_replaced(
    name, head, times, arrow, frame, texts, before, after
):
    start = f"\ufeff{head}{times}\n"
    after = frame.format(after.replace("{1}", arrow))
    for newline in ("\n", "\r\n"):
        data = f"{start}{before}\n\n".replace("\n", newline)
        expected = f"{start}{after}\n\n".replace("\n", newline)
        assert translate(name, data, texts) == expected


def cues(*texts):
    times = "00:00:0{0},000 --> 00:00:0{0},900"
    return "\n".join(
        f"{n}\n{times.format(n)}\n{each}\n" for n, each in enumerate(texts)
    )


def test_a_sentence_is_divided_over_its_cues_in_proportion():
    before = cues("<i>The old dog</i>", "sleeps in the", "garden.", "It is May.")
    after = cues("<i>Der alte</i>", "Hund schl\u00e4ft im", "Garten.", "Es ist Mai.")
    texts = {
        "The old dog sleeps in the garden.": "Der alte Hund schl\u00e4ft im Garten.",
        "It is May.": "Es ist Mai.",
    }
    assert translate("srt", before, texts) == after


def test_a_code_stays_in_its_cue():
    before = cues("One big", "dog <b>sleeps</b>.")
    document = read("srt", before)
    (text,) = document.texts
    opening, closing = document.codes.stand_in.findall(text)
    assert text == f"One big dog {opening}sleeps{closing}."
    # The sixth of nine letters before the tags would be too late for the first cue.
    new = f"Da {opening}schlummert ein grosser Hund{closing}."
    expected = cues("Da", "<b>schlummert ein grosser Hund</b>.")
    assert document.write([new]).decode() == expected


def test_subtitles_without_punctuation_are_not_one_sentence():
    lines = [f"line {n} goes on" for n in range(14)]
    texts = read("srt", cues(*lines[:9])).texts
    assert texts == [" ".join(lines[:6]), " ".join(lines[6:9])]


def test_entities_of_webvtt_are_text():
    before = "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Al>Tom &amp; I &lt;3</v>\n"
    texts = {"Tom & I <3": "<3 Tom & ich"}
    after = before.replace("Tom &amp; I &lt;3", "&lt;3 Tom &amp; ich")
    assert translate("vtt", before, texts) == after


PO = """\
# Kept.
msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\nPlural-Forms: nplurals={0};\\n"

#: a.c:1
msgctxt "menu"
msgid "Open"
msgstr ""

#, c-format
#| msgid "%d cup"
msgid "%d mug"
msgid_plural "%d mugs"
msgstr[0] ""

#, fuzzy
msgid ""
"First line.\\n"
"A \\"second\\" one, "
"wrapped.\\n"
msgstr "Alt"

msgid "Done"
msgstr "Fertig"

#, fuzzy
#~ msgid "Gone"
#~ msgstr ""

msgid "Last"
msgstr ""
"""


def test_messages_of_gettext_are_filled_and_marked_as_fuzzy():
    after = PO.replace('msgid "Open"\nmsgstr ""', 'msgid "Open"\nmsgstr "\u00d6ffnen"')
    after = after.replace("#: a.c:1\n", "#: a.c:1\n#, fuzzy\n")
    after = after.replace("#, c-format", "#, fuzzy, c-format")
    forms = 'msgstr[0] "%d Krug"\nmsgstr[1] "%d Kr\u00fcge"\nmsgstr[2] "%d Kr\u00fcge"'
    after = after.replace('msgstr[0] ""', forms)
    lines = 'msgstr ""\n"Erste Zeile.\\n"\n"Eine \\"zweite\\".\\n"'
    after = after.replace('msgstr "Alt"', lines)
    after = after.replace(
        'msgid "Last"\nmsgstr ""', '#, fuzzy\nmsgid "Last"\nmsgstr "Letztes"'
    )
    document = read("po", PO.format("3; plural=n==1 ? 0 : n==2 ? 1 : 2"))
    plain = ["Open", "%d mug", "%d mugs", "%d mugs"]
    assert document.texts == [
        *plain,
        *("First line.", 'A "second" one, wrapped.', "Last"),
    ]
    assert [each.name for each in document.segments][:3] == [
        *("menu|Open", "%d mug[0]", "%d mug[1]")
    ]
    new = ["\u00d6ffnen", "%d Krug", "%d Kr\u00fcge", "%d Kr\u00fcge"]
    new += ["Erste Zeile.", 'Eine "zweite".', "Letztes"]
    expected = after.format("3; plural=n==1 ? 0 : n==2 ? 1 : 2")
    assert document.write(new).decode() == expected


def test_retranslation_replaces_finished_messages():
    data = 'msgid "Done"\nmsgstr "Fertig"\n'
    assert read("po", data).texts == []
    after = '#, fuzzy\nmsgid "Done"\nmsgstr "Erledigt"\n'
    assert translate("po", data, {"Done": "Erledigt"}, retranslate=True) == after


def test_an_encoding_stays_and_must_have_the_characters():
    data = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=ISO-8859-1\\n"\n'
    data = (data + '\nmsgid "D\u00e9j\u00e0"\nmsgstr ""\n').encode("latin-1")
    document = read("po", data)
    assert document.texts == ["D\u00e9j\u00e0"]
    assert b'msgstr "H\xe4"' in document.write(["H\u00e4"])
    with pytest.raises(UserError, match="ISO-8859-1 has no character '\u0142'"):
        document.write(["\u0142"])


XLIFF_1 = """\
<?xml version="1.0"?>
<x:xliff version="1.2" xmlns:x="urn:oasis:names:tc:xliff:document:1.2">
 <x:file source-language="en-GB" original="a"{0}>
  <x:body>
   <x:trans-unit id="1" approved="{1}">
    <x:source>Tom &amp; <x:g id="1">I</x:g> see &lt;b&gt;.<x:x id="2"/></x:source>{2}
    <x:note>A target: none</x:note>
   </x:trans-unit>
   <x:trans-unit id="2"><x:source>Yes</x:source><x:target>Ja</x:target></x:trans-unit>
   <x:group translate="no"><x:trans-unit id="3"><x:source>No</x:source></x:trans-unit>
   </x:group>
  </x:body>
 </x:file>
</x:xliff>
"""


def test_xliff_gets_targets_states_and_the_language():
    before = XLIFF_1.format("", "yes", "")
    document = read("xliff", before)
    (text,) = document.texts
    opening, closing = document.codes.stand_in.findall(text)
    assert text == f"Tom & {opening}I{closing} see <b>."
    new = f"{opening}Ich{closing} & Tom sehen <b>."
    target = '<x:g id="1">Ich</x:g> &amp; Tom sehen &lt;b&gt;.<x:x id="2"/></x:target>'
    target = f'\n    <x:target state="translated">{target}'
    after = XLIFF_1.format(' target-language="de"', "no", target)
    assert document.write([new]).decode() == after
    assert read("xliff", after).texts == []


def test_broken_codes_of_a_translation_are_repaired():
    unit = '<trans-unit id="1"><source>{}</source>{}</trans-unit>'
    frame = '<xliff><file source-language="en" target-language="de">{}</file></xliff>'
    source = '<g id="1">A <g id="2">b</g></g> <x id="3"/> c'
    document = read("xliff", frame.format(unit.format(source, "")))
    outer, inner, inner_end, outer_end, single = document.codes.stand_in.findall(
        document.texts[0]
    )
    crossed = f"{inner}A {outer}b{inner_end} {single} c{outer_end} d"
    for new in (crossed, f"A b {outer_end} c d{single}{single}{outer}{inner}"):
        written = document.write([new]).decode()
        assert '<g id="1">' in written.partition("<target")[2]
        assert read("xliff", written, retranslate=True).texts == document.texts or (
            read("xliff", written).texts == []
        )
    expected = '<g id="1">A <g id="2">b</g> </g> c<x id="3"/> d'
    assert expected in document.write([crossed]).decode()


def test_segments_of_xliff_2_keep_ids_and_lose_their_substate():
    frame = (
        '<xliff version="2.1" srcLang="en" trgLang="de-AT"><file id="f">'
        '<unit id="u"><segment id="s" {0}><source>One <pc id="1">dog</pc></source>{1}'
        "</segment><ignorable><source> </source></ignorable></unit></file></xliff>"
    )
    document = read("xliff", frame.format('state="initial" subState="a:b"', ""))
    (text,) = document.texts
    new = text.replace("One", "Ein").replace("dog", "Hund")
    target = '<target>Ein <pc id="1">Hund</pc></target>'
    expected = frame.format('state="translated"', target)
    assert document.write([new]).decode() == expected


def test_marked_segments_of_xliff_are_filled_one_by_one():
    segments = '<mrk mtype="seg" mid="0">A.</mrk> <mrk mtype="seg" mid="1">B.</mrk>'
    frame = (
        '<xliff><file source-language="en" target-language="de"><trans-unit id="1">'
        f"<source>A. B.</source><seg-source>{segments}</seg-source>{{}}</trans-unit>"
        "</file></xliff>"
    )
    both = segments.replace("A.", "C.").replace("B.", "D.")
    expected = frame.format(f'<target state="translated">{both}</target>')
    assert translate("xliff", frame.format(""), {"A.": "C.", "B.": "D."}) == expected
    half = both.replace("D.", "")
    before = frame.format(f"<target>{half}</target>")
    assert translate("xliff", before, {"B.": "D."}) == expected


def test_xliff_for_another_language_is_rejected():
    data = (
        '<xliff><file source-language="en" target-language="fr-FR"><trans-unit id="1">'
    )
    data += "<source>A</source></trans-unit></file></xliff>"
    with pytest.raises(UserError, match="target-language is fr-FR, not de"):
        read("xliff", data)
    assert read("xliff", data, target_lang="fr").texts == ["A"]


def test_tmx_gets_variants_in_the_language_of_the_others():
    frame = (
        '<tmx version="1.4"><header srclang="en"/><body>\n'
        ' <tu tuid="1">\n  <tuv xml:lang="EN-US">\n   <seg>One {0} dog</seg>\n  </tuv>'
        "{1}\n </tu>\n"
        ' <tu><tuv xml:lang="en"><seg>Yes</seg></tuv>'
        '<tuv xml:lang="de-CH"><seg>Ja</seg></tuv></tu>\n</body></tmx>'
    )
    code = '<ph x="1">&lt;br/&gt;</ph>'
    document = read("tmx", frame.format(code, ""))
    (text,) = document.texts
    new = text.replace("One", "Ein").replace("dog", "Hund")
    variant = f'\n  <tuv xml:lang="de-CH">\n   <seg>Ein {code} Hund</seg>\n  </tuv>'
    assert document.write([new]).decode() == frame.format(code, variant)


@pytest.mark.parametrize(
    ("name", "before", "texts", "after"),
    [
        # A missing column is added; quotes only where the cells have them.
        (
            "csv",
            'id;en\r\n1;"A; b"\r\n2;C\r\n',
            {"A; b": 'D "e"', "C": "F"},
            'id;en;de\r\n1;"A; b";"D ""e"""\r\n2;C;F\r\n',
        ),
        ("csv", "target,source\n,A\nB,C", {"A": "D"}, "target,source\nD,A\nB,C"),
        ("tsv", 'A "b\t\nC\tD\n', {'A "b': "E"}, 'A "b\tE\nC\tD\n'),
        ("tsv", "A\n\nB", {"A": "C", "B": "D"}, "A\tC\n\nB\tD"),
        (
            "jsonl",
            '{"n": 1, "translation": {"en": "A", "de": null}}\n{"source":"\u00e9"}\n',
            {"A": "B", "\u00e9": '"'},
            '{"n": 1, "translation": {"en": "A", "de": "B"}}\n'
            '{"source":"\u00e9", "target": "\\""}\n',
        ),
        (
            "json",
            '{"a.b" : ["A <br>", 1.0, null],\t"@c": "D", "u": "\\u00e9 x<\\/b>"}',
            {"A <br>": "\u00c4", "\u00e9 x</b>": "\u00fc/"},
            '{"a.b" : ["\\u00c4", 1.0, null],\t"@c": "D", "u": "\\u00fc\\/"}',
        ),
        (
            "json",
            '["{n, plural, =0 {no} other {# of {m, select, x {it} other {all}}}} on"]',
            {"on": "da", "no": "kein", "of": "von", "it": "ihm", "all": "allem"},
            '["{n, plural, =0 {kein} other {# von {m, select, x {ihm} other {allem}}}} '
            'da"]',
        ),
        (
            "properties",
            "! A=b\na\\ b : It''s {0}\nc=Let's\nd=#ff\ne = Two.\\n\\\n   lines \n",
            {
                "It's {0}": "Gib's {0}",
                "Let's": "Los, l'ami",
                "Two.": "Zw\u00e4i",
                "lines": "lines",
            },
            "! A=b\na\\ b : Gib''s {0}\nc=Los, l'ami\nd=#ff\ne = Zw\\u00e4i\\n\\\n"
            "   lines \n",
        ),
    ],
)
def test_strings_and_tables(name, before, texts, after):
    document = read(name, before)
    assert [document.codes.show(each) for each in document.texts] == list(texts)
    assert document.write(list(texts.values())).decode() == after


def test_properties_in_latin_1_stay_in_latin_1():
    document = read("properties", "a=caf\u00e9 open\nb=caf\u00e9\n".encode("latin-1"))
    written = document.write(["Caf\u00e9 auf", "caf\u00e9"])
    assert written == "a=Caf\\u00e9 auf\nb=caf\u00e9\n".encode("latin-1")


DAMAGED = [
    ("srt", "1\n00:00:01,000 --> 00:0", ":2: the times of the cue are damaged"),
    ("srt", cues("A") + "\n2", ":5: a cue without times"),
    ("srt", "Some text", ":1: a cue without times"),
    ("srt", b"1\n00:00:01,000 --> 00:00:02,000\n\xe9t\xe9 fini", ":3: the bytes are"),
    ("vtt", "WEBVT", "must begin with WEBVTT"),
    ("vtt", "WEBVTT\n\n00:01.000 --> 00:02", ":3: the times"),
    ("po", 'msgid "A"\nmsgst', ":2: not valid in a PO file"),
    ("po", 'msgid "A"\nmsgstr "B', ":2: not valid in a PO file"),
    ("po", 'msgid "A"\n', ":1: the entry has no msgstr"),
    ("xliff", "<xliff><file>", ":1: .*no element found"),
    ("xliff", "<a/>", "no unit of XLIFF"),
    ("xliff", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "declares the entity b"),
    ("tmx", '<tmx><tu><tuv xml:lang="fr"/></tu></tmx>', "no unit in en, only in fr"),
    ("csv", 'source,target\n"A,', ":2: a cell is damaged"),
    ("csv", "source,target,id\nA,", ":2: 2 cells, but 3 in line 1"),
    ("jsonl", '{"source": "A"}\n{"so', ":2: the JSON is damaged"),
    ("jsonl", '{"fr": "A"}\n', ':1: no text with the key "source" or "en"'),
    ("json", '{"a": "b', ":1: the JSON is damaged"),
    ("json", "[" * 100_000, "too deeply nested"),
    ("properties", "a=b\nc=\\u00", ":2: damaged escape"),
]


@pytest.mark.parametrize(("name", "data", "message"), DAMAGED)
def test_damaged_documents_are_rejected(name, data, message):
    with pytest.raises(UserError, match=message) as error:
        read(name, data)
    assert "\n" not in str(error.value)


def test_formats_are_recognized_by_the_ending_of_the_name():
    names = ("a.PO", "b.de.xlf", "c.json", "d.txt", "e", "f.html")
    found = [find_format(name) for name in names]
    assert found == ["po", "xliff", "json", None, None, None]
