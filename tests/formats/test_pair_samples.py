"""Pairs of sample files of many programs, compared with the expected ones."""

import re

import pytest

from t2t_repro.formats.pairs import read_pairs
from t2t_repro.system.atomic_file import iterate_pairs

# The three samples of OmegaT, whose expected pairs are in another order than the units.
UNORDERED = "tmx__omegat"
COMPRESSED = {"gz": "gz", "xz": "gz", "zst": "zst"}  # Target of each source.
TARGET_LANGUAGES = {"po__msgmerge_fr.po": "fr"}


def unescape(field):
    r"""Returns a field in one line; it escapes \t, \n and \\."""
    text = re.sub(r"\\(.)", lambda m: {"t": "\t", "n": "\n"}.get(m[1], m[1]), field)
    return " ".join(text.split())


def read_expected(path):
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    names = header.split("\t")
    rows = [map(unescape, line.split("\t")) for line in lines]
    return [dict(zip(names, row, strict=True)) for row in rows]


def read(path, name, reference):
    if path.suffix[1:] in COMPRESSED and path.parent.name == "compressed":
        target = path.with_name(f"train.de.{COMPRESSED[path.suffix[1:]]}")
        return list(iterate_pairs(path, target))
    language = TARGET_LANGUAGES.get(name, "de")
    pairs = read_pairs(path, "en", language, reference=reference)
    return [(pair.source, pair.target) for pair in pairs]


def test_samples_have_the_expected_pairs(shared_dir):
    folder = shared_dir / "formats"
    if not folder.exists():
        pytest.skip(f"{folder} does not exist")
    expected_files = sorted((folder / "expected").glob("*.pairs.tsv"))
    assert len(expected_files) > 25
    for expected_file in expected_files:
        name = expected_file.name.removesuffix(".pairs.tsv")
        path = folder.joinpath(*name.split("__"))
        if not path.exists():
            path = next(folder.joinpath(*name.split("__")[:-1]).rglob(path.name))
        rows = read_expected(expected_file)
        for column in rows[0]:
            if not column.startswith("target"):
                continue
            reference = column.partition("_")[2] or None
            expected = [(row["source"], row[column]) for row in rows]
            pairs = read(path, name, reference)
            if name.startswith(UNORDERED):
                pairs, expected = sorted(pairs), sorted(expected)
            assert pairs == expected, name
