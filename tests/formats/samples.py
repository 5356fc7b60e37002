"""Small valid files of every format, with the same pairs, for the tests of readers."""

import gzip
import zipfile

PAIRS = [
    ("The kettle is on the stove.", "Der Kessel steht auf dem Herd."),
    ('Salt & "pepper" cost <2 euros.', "Salz & „Pfeffer“ kosten <2 Euro."),
    ("We moved house in March.", "Wir sind im März umgezogen."),
]


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;")


def units(template):
    """Fills a template with the number and the escaped texts of each pair."""
    return "\n".join(
        template.format(n, *map(escape, pair)) for n, pair in enumerate(PAIRS, 1)
    )


def documents(template):
    """Returns segments for each side."""
    return [
        "".join(template.format(n, escape(pair[side])) for n, pair in enumerate(PAIRS))
        for side in (0, 1)
    ]


def quote(text):
    return '"' + text.replace('"', '\\"') + '"'


def texts():
    """Returns the contents of each file that is a text, by its name."""
    wmt = documents('<seg id="{}">{}</seg>\n')
    sentences = documents('<s id="{}">{}</s>\n')
    links = "".join(f'<link xtargets="{n};{n}" id="SL{n}"/>\n' for n in range(3))
    doc = '<doc docid="d">'
    ids = "".join(f'<seg id="{n}">x</seg>' for n in range(3))
    return {
        "memory.tmx": '<tmx version="1.4"><body>'
        + units(
            '<tu tuid="{0}"><tuv xml:lang="de"><seg>{2}</seg></tuv>'
            '<tuv xml:lang="en"><seg>{1}</seg></tuv></tu>'
        )
        + "</body></tmx>",
        "old.xlf": '<xliff version="1.2"><file source-language="en" '
        'target-language="de"><body>'
        + units(
            '<trans-unit id="{0}"><source>{1}</source><target>{2}</target></trans-unit>'
        )
        + "</body></file></xliff>",
        "new.xliff": '<x:xliff xmlns:x="u" version="2.1" srcLang="en" trgLang="de">'
        "<x:file>"
        + units(
            '<x:unit id="{0}"><x:segment><x:source>{1}</x:source>'
            "<x:target>{2}</x:target></x:segment></x:unit>"
        )
        + "</x:file></x:xliff>",
        "house.po": "".join(
            f"msgid {quote(source)}\nmsgstr {quote(target)}\n\n"
            for source, target in PAIRS
        ),
        "table.tsv": "".join(f"{s}\t{t}\t0.5\n" for s, t in PAIRS),
        "table.csv": "de,en\r\n"
        + "".join(
            '"{}","{}"\r\n'.format(t.replace('"', '""'), s.replace('"', '""'))
            for s, t in PAIRS
        ),
        "lines.jsonl": "".join(
            f'{{"translation": {{"de": {quote(t)}, "en": {quote(s)}}}}}\n'
            for s, t in PAIRS
        ),
        "set-src.en.sgm": f'<srcset srclang="en">{doc}{wmt[0]}</doc></srcset>',
        "set-ref.de.sgm": f'<refset trglang="de">{doc}{wmt[1]}</doc></refset>',
        "set.xml": f'<dataset id="s"><doc id="d"><src lang="en"><p>{wmt[0]}</p></src>'
        f'<ref lang="de" translator="A">{wmt[1]}</ref>'
        f'<ref lang="de" translator="B">{ids}</ref><hyp>{ids}</hyp></doc></dataset>',
        "links.xml": '<cesAlign><linkGrp fromDoc="de/a.xml.gz" toDoc="en/a.xml.gz">'
        f"{links}</linkGrp></cesAlign>",
        "xml/en/a.xml": f"<text>{sentences[0]}</text>",
        "xml/de/a.xml": f"<text>{sentences[1]}</text>",
    }


def write(folder):
    """Writes all files to a folder and returns the paths of those to read."""
    paths = []
    for name, text in texts().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
        if path.parent == folder:
            paths.append(path)
    for name in ("memory.tmx", "table.tsv"):
        paths.append(folder / f"packed.{name}.gz")
        paths[-1].write_bytes(gzip.compress((folder / name).read_bytes()))
    paths.append(folder / "moses.zip")
    with zipfile.ZipFile(paths[-1], "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("README", "Invented sentences.\n")
        for side, lang in enumerate(("en", "de")):
            lines = "".join(f"{pair[side]}\n" for pair in PAIRS)
            archive.writestr(f"corpus.de-en.{lang}", lines)
    return paths
