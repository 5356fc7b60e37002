"""Tests of all readers of pairs: the same pairs from every format, damaged files."""

import zipfile

import pytest

from t2t_repro.formats.pairs import READERS, find_format, read_pairs
from t2t_repro.system.errors import UserError
from tests.formats import samples

CUTS = 30


def read(path, source_lang="en", target_lang="de", **options):
    """Returns the pairs without their places."""
    return [pair[:2] for pair in read_pairs(path, source_lang, target_lang, **options)]


def test_every_format_gives_the_same_pairs_in_both_directions(tmp_path):
    paths = samples.write(tmp_path)
    assert {find_format(path) for path in paths} == set(READERS)
    for path in paths:
        assert read(path) == samples.PAIRS, path
        reversed_pairs = [pair[::-1] for pair in samples.PAIRS]
        languages = ("de", "en")
        if path.suffix == ".tsv" or path.name.endswith(".tsv.gz"):
            continue  # Without a header, the direction is that of the columns.
        if path.suffix == ".po":
            continue  # Without a language in the header, so is that of a PO file.
        assert read(path, *languages) == reversed_pairs, path


def test_a_cut_file_gives_complete_pairs_or_one_line(tmp_path):
    for path in samples.write(tmp_path):
        contents = path.read_bytes()
        for i in range(CUTS):
            path.write_bytes(contents[: len(contents) * i // CUTS])
            pairs = []
            try:
                for pair in read_pairs(path, "en", "de"):
                    pairs.append(pair[:2])
            except UserError as error:
                assert "\n" not in str(error)
                assert path.name in str(error)
            else:
                # Text formats may end after any line; the last text may be cut.
                assert find_format(path) in (".tsv", ".csv", ".po", ".jsonl"), path
            for number, (source, target) in enumerate(pairs):
                assert source == samples.PAIRS[number][0]
                assert samples.PAIRS[number][1].startswith(target)
                complete = find_format(path) == ".tsv" and number == len(pairs) - 1
                assert complete or target == samples.PAIRS[number][1]
        path.write_bytes(contents)


def test_files_of_other_languages_are_rejected_with_their_own(tmp_path):
    samples.write(tmp_path)
    for name in ("memory.tmx", "old.xlf", "set.xml", "links.xml", "lines.jsonl"):
        with pytest.raises(UserError, match=rf"{name}: none of .*file: de, en$"):
            read(tmp_path / name, "en", "fr")
    with pytest.raises(UserError, match=r"a header with en but not both"):
        read(tmp_path / "table.csv", "en", "fr")
    with pytest.raises(UserError, match=r"no files NAME\.en and NAME\.fr; its files"):
        read(tmp_path / "moses.zip", "en", "fr")
    with pytest.raises(UserError, match=r"set-ref\.LANGUAGE\.sgm for en-fr; found: no"):
        read(tmp_path / "set-src.en.sgm", "en", "fr")


def test_unknown_formats_are_rejected(tmp_path):
    with pytest.raises(UserError, match=r"a\.docx: unknown format; the name .*\.tmx, "):
        read(tmp_path / "a.docx")
    (tmp_path / "page.xml").write_text("<html/>")
    with pytest.raises(UserError, match=r"page\.xml: its root element is html"):
        read(tmp_path / "page.xml")


def test_references_of_a_test_set_are_chosen_by_name(tmp_path):
    samples.write(tmp_path)
    path = tmp_path / "set.xml"
    assert {target for _, target in read(path, reference="B")} == {"x"}
    reports = []
    read(path, reference="A", report=reports.append)
    assert reports == ["set.xml: 3 pairs of 3 units (en 3, de 3, reference A of A, B)"]
    with pytest.raises(UserError, match=r"no reference C; its references are A, B$"):
        read(path, reference="C")


def test_segments_of_sgm_files_must_correspond(tmp_path):
    samples.write(tmp_path)
    path = tmp_path / "set-ref.de.sgm"
    path.write_text(path.read_text().replace('id="2"', 'id="3"'))
    with pytest.raises(
        UserError, match="segment 3 of document d is at the place of segment 2"
    ):
        read(path)


def test_documents_of_an_alignment_must_be_in_its_folder(tmp_path):
    samples.write(tmp_path)
    path = tmp_path / "links.xml"
    text = path.read_text()
    for name, language in (("/etc/passwd", ""), ("../en/a.xml", "..")):
        path.write_text(text.replace("en/a.xml.gz", name))
        with pytest.raises(UserError, match="is not a document's name"):
            read(path, language, "de")
    path.write_text(text.replace("0;0", "0 1;7"))
    with pytest.raises(UserError, match=r"link SL0, line 1: .* has no sentence 7"):
        read(path)
    path.write_text(text)
    (tmp_path / "xml/de/a.xml").unlink()
    with pytest.raises(UserError, match=r"needs its document de/a\.xml\.gz"):
        read(path)


def test_sgm_files_need_not_be_valid_xml(tmp_path):
    (tmp_path / "t-src.en.sgm").write_text(
        "<SRCSET srclang=en><DOC docid=d><hl>\n<SEG id=1> R&D &amp;lt; 5 < 6\n</SEG>"
        "</hl></DOC></SRCSET>\n"
    )
    (tmp_path / "t-ref.de.sgm").write_text(
        '<refset><doc sysid="ref" docid="d"><seg id="1">F&E</seg></doc></refset>'
    )
    assert read(tmp_path / "t-ref.de.sgm") == [("R&D &lt; 5 < 6", "F&E")]


@pytest.mark.parametrize(
    "method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
@pytest.mark.parametrize("place", ["contents", "directory"])
def test_damaged_archive_is_refused_for_every_method(tmp_path, method, place):
    path = tmp_path / "corpus.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        for language in ("de", "en"):
            archive.writestr(f"corpus.de-en.{language}", "One, two, three.\n" * 9)
    assert len(list(read_pairs(path, "en", "de"))) == 9
    contents = bytearray(path.read_bytes())
    if place == "contents":
        # The data of a member follow 30 bytes and its name.
        start = 30 + len("corpus.de-en.de")
        contents[start : start + 12] = b"\xff" * 12
    else:
        # The size of the directory, 12 bytes after the beginning of its end record.
        end = contents.rindex(b"PK\5\6")
        contents[end + 12 : end + 16] = (10**6).to_bytes(4, "little")
    path.write_bytes(contents)
    with pytest.raises(UserError, match=r"corpus\.zip is not a complete zip archive"):
        list(read_pairs(path, "en", "de"))
