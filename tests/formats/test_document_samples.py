"""Documents of other programs: their segments, and copies as translations.

The folder `formats` of the reference data has the expected segments.
"""

import difflib
import re
import shutil
import subprocess
from collections import defaultdict

import polib
import pytest
import srt

from t2t_repro.formats.documents import Request, find_format, read_document

_ESCAPED = re.compile(r"\\(.)")


@pytest.fixture(scope="module")
def samples(shared_dir):
    """Returns the path and the format of each document that can be translated."""
    folder = shared_dir / "formats"
    paths = sorted(path for path in folder.glob("*/*.*") if find_format(path))
    paths = [path for path in paths if path.parent.name not in ("cleaning", "expected")]
    if not paths:
        pytest.skip(f"no files in {folder}")
    return [(path, find_format(path)) for path in paths]


def read(path, name, data=None, **settings):
    target = "fr" if "_fr" in path.name else "de"
    source = "de" if path.stem.endswith("_de") else "en"
    request = Request(path, source, target, **settings)
    return read_document(name, path.read_bytes() if data is None else data, request)


def expected_texts(path):
    """Returns the expected texts to translate, by unit."""
    name = f"{path.parent.name}__{path.name}.segments.tsv"
    table = path.parents[1] / "expected" / name
    texts = defaultdict(list)
    lines = table.read_text(encoding="utf-8").splitlines()[1:] if table.exists() else ()
    for line in lines:
        fields = line.split("\t")
        unit, action, source, markup = (
            _ESCAPED.sub(lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]), field)
            for field in fields[:4]
        )
        if path.suffix in (".srt", ".vtt"):  # Sentences of a cue are numbered there.
            unit = unit.partition(".")[0]
        if action == "translate":
            # Tags in strings of programs are text that the translator keeps.
            texts[unit].append(markup if path.suffix == ".json" else source)
    return {unit: join(rows) for unit, rows in texts.items()}


def join(texts):
    return " ".join(" ".join(texts).split())


def test_segments_are_as_expected(samples):
    compared = 0
    for path, name in samples:
        texts = defaultdict(list)
        if expected := expected_texts(path):
            for segment in read(path, name).segments:
                texts[segment.name].append(segment.source)
            found = {unit: join(rows) for unit, rows in texts.items()}
            if path.name == "csv2po.po":  # Its units are named by their comments.
                found = dict(zip(expected, found.values(), strict=True))
            assert found == expected, path
            compared += len(found)
    assert compared > 80


# Lines of PO, and tags of XML with the text after them, that a copy of the source
# changes.
_RULES = {
    "po": r"#, .*|msgstr(\[\d\])? \".*\"",
    "xliff": r"</source>\s*"
    r"|</?(target|segment|file|xliff|g|x|bpt|ept|ph|pc|sc|ec|mrk)\b[^<]*",
    "tmx": r"</?(tuv|seg)\b[^<]*",
}


def test_copies_of_the_source_change_only_what_the_rules_name(samples, tmp_path):
    for path, name in samples:
        data = path.read_bytes()
        document = read(path, name)
        copy = document.write(document.texts)
        encoding = "utf-16" if data.startswith(b"\xff\xfe") else "utf-8"
        end = r"(?=<)" if name in ("xliff", "tmx") else r"\n"
        parts = [re.split(end, each.decode(encoding)) for each in (data, copy)]
        for line in difflib.ndiff(*parts):
            if line[0] in "+-":
                assert re.fullmatch(_RULES[name], line[2:]), path
        second = read(path, name, copy)
        assert second.write(second.texts) == copy, path
        if name in ("xliff", "tmx"):
            assert second.texts == [], path
        check_with_others(tmp_path / path.name, name, data, copy)


def check_with_others(path, name, data, copy):
    """Checks that other programs read a copy as they read the original."""
    path.write_bytes(copy)
    before = path.with_name(f"before_{path.name}")
    before.write_bytes(data)
    if name == "po":
        old, new = (list(polib.pofile(str(each))) for each in (before, path))
        assert [each.msgid for each in new] == [each.msgid for each in old]
        assert all(each.translated() or each.fuzzy or each.obsolete for each in new)
        if shutil.which("msgfmt"):
            subprocess.run(
                ["msgfmt", "-c", "-o", path.with_suffix(".mo"), path], check=True
            )
    elif name == "srt":
        old, new = (
            list(srt.parse(each.read_text("utf-8-sig"))) for each in (before, path)
        )
        assert new == old
    elif name in ("xliff", "tmx") and shutil.which("xmllint"):
        subprocess.run(["xmllint", "--noout", "--nonet", path], check=True)


def test_other_translations_keep_codes_lines_and_names(samples):
    for path, name in samples:
        document = read(path, name, retranslate=True)
        upper = [
            re.sub(r"[a-z](?![^<>]*>)(?![^{}]*\})", "x", text)
            for text in document.texts
        ]
        changed = read(path, name, document.write(upper), retranslate=True)
        assert len(changed.texts) == len(document.texts), path
        names = [segment.name for segment in document.segments]
        assert [segment.name for segment in changed.segments] == names
        codes = [document.codes.stand_in.findall(text) for text in upper]
        assert [changed.codes.stand_in.findall(text) for text in changed.texts] == codes
