"""Writing and reading of shards; rejection of damaged files."""

import dataclasses
import errno
import functools
import hashlib
import itertools
import json
import os
import resource
from pathlib import Path

import numpy as np
import pytest

from t2t_repro.data import shard_encoding
from t2t_repro.data.manifest import Origin
from t2t_repro.data.shards import load_shards, write_part, write_shards
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.plain_tokenizer import PlainTokenizer
from tests.data.code_points import CodePoints, CodePointTokenizer

ORIGIN = Origin("files", "data-1", "train.en and train.de", "en", "de")
PAIRS = [("a b", "ä"), ("", "x"), ("c", " "), ("d e f", "g h"), ("é", "i j k l")]


def ids(text):
    """Returns the expected ids of a text."""
    return [ord(character) + 2 for character in text] + [1]


@pytest.fixture
def directory(tmp_path):
    """A directory of two shards: the first has two pairs, the second has one."""
    path = tmp_path / "enc" / "train"
    write_shards(PAIRS, CodePointTokenizer(), path, "train", ORIGIN, pairs_per_shard=2)
    return path


def test_pairs_with_text_on_both_sides_are_read_back(directory):
    pairs = load_shards(directory, "vocabulary-1", "data-1")
    assert pairs.lengths.tolist() == [[4, 2], [6, 4], [2, 8]]
    for number, (source, target) in enumerate([PAIRS[0], PAIRS[3], PAIRS[4]]):
        batch = pairs.gather(np.array([number]))
        assert batch["inputs"].tolist() == [ids(source)]
        assert batch["targets"].tolist() == [ids(target)]


def test_manifest_has_all_counts_and_files(directory):
    manifest = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["pairs"] == 3
    assert manifest["source_tokens"] == 4 + 6 + 2
    assert manifest["target_tokens"] == 2 + 4 + 8
    assert manifest["left_out"] == {
        "empty source": {"count": 1, "first": [2]},
        "empty target": {"count": 1, "first": [3]},
    }
    files = [s[part] for s in manifest["shards"] for part in ("tokens", "lengths")]
    assert [f["name"] for f in files] == [
        "train-00000-of-00002.tokens.npy",
        "train-00000-of-00002.lengths.npy",
        "train-00001-of-00002.tokens.npy",
        "train-00001-of-00002.lengths.npy",
    ]
    for file in files:
        data = (directory / file["name"]).read_bytes()
        assert len(data) == file["bytes"]
        assert hashlib.sha256(data).hexdigest() == file["sha256"]
    names = {path.name for path in directory.iterdir()}
    assert names == {f["name"] for f in files} | {"manifest.json", "skipped_pairs.tsv"}


@pytest.mark.parametrize(("vocab_size", "dtype"), [(65536, "uint16"), (65537, "int32")])
def test_ids_take_two_bytes_for_a_small_vocabulary(tmp_path, vocab_size, dtype):
    tokenizer = CodePointTokenizer(vocab_size)
    write_shards(PAIRS, tokenizer, tmp_path / "train", "train", ORIGIN)
    tokens = np.load(tmp_path / "train" / "train-00000-of-00001.tokens.npy")
    assert tokens.dtype == dtype


def test_many_chunks_keep_the_order_of_the_lines(tmp_path):
    lines = [(str(n), str(2 * n)) for n in range(10_000)]
    folder = tmp_path / "train"
    tokenizer = CodePointTokenizer()
    write_shards(iter(lines), tokenizer, folder, "train", ORIGIN, pairs_per_shard=3000)
    pairs = load_shards(folder)
    assert len(list(folder.glob("*.tokens.npy"))) == 4
    for number in (0, 2999, 3000, 4095, 4096, 9999):
        batch = pairs.gather(np.array([number]))
        assert batch["inputs"].tolist() == [ids(str(number))]
        assert batch["targets"].tolist() == [ids(str(2 * number))]


def test_second_run_replaces_the_first(directory):
    write_shards([("q", "r")], CodePointTokenizer(), directory, "train", ORIGIN)
    assert load_shards(directory).lengths.tolist() == [[2, 2]]
    assert [path.name for path in directory.parent.iterdir()] == ["train"]


def test_failed_run_keeps_the_previous_shards_and_leaves_no_other_files(directory):
    def broken():
        yield ("a", "b")
        raise UserError("train.en:2: not UTF-8")

    with pytest.raises(UserError, match="not UTF-8"):
        write_shards(broken(), CodePointTokenizer(), directory, "train", ORIGIN)
    assert len(load_shards(directory)) == 3
    assert [path.name for path in directory.parent.iterdir()] == ["train"]


def read_bytes(folder):
    """Returns the contents of all files in a folder, by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


MANY = [(f"a{n} b", "" if n % 7 == 3 else f"c {n}") for n in range(100)]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """Files of `MANY` in shards of 20 pairs."""
    folder = tmp_path_factory.mktemp("uninterrupted") / "train"
    tokenizer = CodePointTokenizer()
    write_shards(MANY, tokenizer, folder, "train", ORIGIN, pairs_per_shard=20)
    return read_bytes(folder)


@pytest.mark.parametrize(
    "workers",
    [2, *(pytest.param(n, marks=pytest.mark.medium) for n in (3, 7))],
)
def test_files_do_not_depend_on_the_number_of_processes(
    tmp_path, uninterrupted, monkeypatch, workers
):
    monkeypatch.setattr(shard_encoding, "_CHUNKS_ALONE", 1)
    write_shards(
        MANY,
        CodePointTokenizer(),
        tmp_path / "train",
        "train",
        ORIGIN,
        pairs_per_shard=20,
        workers=workers,
    )
    assert read_bytes(tmp_path / "train") == uninterrupted


@pytest.mark.parametrize("number", [0, 10, 30, 70, 99])
def test_interrupted_run_keeps_its_whole_shards(tmp_path, uninterrupted, number):
    """The second run encodes no text of a whole shard."""

    def interrupted():
        yield from MANY[:number]
        raise KeyboardInterrupt

    encoded = []

    class Recorded(CodePoints):
        def encode(self, text):
            encoded.append(text)
            return super().encode(text)

    folder, tokenizer = tmp_path / "train", CodePointTokenizer()
    with pytest.raises(KeyboardInterrupt):
        write_shards(
            interrupted(), tokenizer, folder, "train", ORIGIN, pairs_per_shard=20
        )
    whole = [*tmp_path.glob(".unfinished-train-*/*.lengths.npy")]
    assert len(whole) == sum(bool(target) for _, target in MANY[:number]) // 20
    tokenizer.make_plain = lambda: PlainTokenizer(Recorded(), Recorded())
    write_shards(MANY, tokenizer, folder, "train", ORIGIN, pairs_per_shard=20)
    assert read_bytes(folder) == uninterrupted
    pairs = [pair for pair in MANY if pair[1]][20 * len(whole) :]
    assert encoded == list(itertools.chain.from_iterable(pairs))
    assert [path.name for path in tmp_path.iterdir()] == ["train"]


def test_a_manifest_that_cannot_be_written_is_named(tmp_path):
    """The limit is larger than the shards and smaller than the manifest."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400, limits[1]))
    try:
        with pytest.raises(UserError, match=r"manifest\.json: File too large"):
            write_shards(
                PAIRS, CodePointTokenizer(), tmp_path / "train", "train", ORIGIN
            )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["tokens", "lengths"])
def test_a_run_killed_between_the_names_of_a_shard_is_repeated(
    tmp_path, uninterrupted, monkeypatch, kind
):
    """Only one of the two files of the second shard has got its final name."""
    folder, tokenizer, rename = tmp_path / "train", CodePointTokenizer(), Path.rename

    def fail(path, target):
        if path.name == f"00001.{kind}.npy":
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return rename(path, target)

    with monkeypatch.context() as context:
        context.setattr(Path, "rename", fail)
        with pytest.raises(OSError, match="Input/output"):
            write_shards(MANY, tokenizer, folder, "train", ORIGIN, pairs_per_shard=20)
    write_shards(MANY, tokenizer, folder, "train", ORIGIN, pairs_per_shard=20)
    assert read_bytes(folder) == uninterrupted
    assert [path.name for path in tmp_path.iterdir()] == ["train"]


def test_shards_of_other_data_are_not_kept(tmp_path):
    folder, tokenizer = tmp_path / "train", CodePointTokenizer()

    def interrupted():
        yield from [("x", "y")] * 5
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_shards(
            interrupted(), tokenizer, folder, "train", ORIGIN, pairs_per_shard=2
        )
    other = dataclasses.replace(ORIGIN, fingerprint="data-2")
    write_shards(PAIRS, tokenizer, folder, "train", other, pairs_per_shard=2)
    assert load_shards(folder).lengths.tolist() == [[4, 2], [6, 4], [2, 8]]
    assert [path.name for path in tmp_path.iterdir()] == ["train"]


def test_parts_of_several_machines_are_the_same_files(tmp_path, uninterrupted):
    folder, tokenizer = tmp_path / "train", CodePointTokenizer()
    counts = [
        write_part(MANY, tokenizer, folder, ORIGIN, (part, 4), pairs_per_shard=20)
        for part in (2, 0, 3, 1)
    ]
    assert counts == [1, 3, 4, 5]
    nothing = CodePoints()
    nothing.encode = None  # No text is left to encode.
    tokenizer.make_plain = functools.partial(PlainTokenizer, nothing, nothing)
    write_shards(MANY, tokenizer, folder, "train", ORIGIN, pairs_per_shard=20)
    assert read_bytes(folder) == uninterrupted


def test_a_part_without_shards_does_not_disturb_another_machine(tmp_path):
    """The other machine has not written its first shard yet."""
    folder, tokenizer = tmp_path / "train", CodePointTokenizer()

    def with_another_machine():
        yield PAIRS[0]
        assert write_part(PAIRS, tokenizer, folder, ORIGIN, (1, 2)) == 0
        yield from PAIRS[1:]

    assert write_part(with_another_machine(), tokenizer, folder, ORIGIN, (0, 2)) == 1
    write_shards(PAIRS, tokenizer, folder, "train", ORIGIN)
    assert len(load_shards(folder)) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["train"]


def test_directory_of_other_files_is_not_replaced(tmp_path):
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UserError, match="contains no shards and will not be replaced"):
        write_shards(PAIRS, CodePointTokenizer(), tmp_path, "train", ORIGIN)
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"


def test_empty_directory_is_filled(tmp_path):
    write_shards(PAIRS, CodePointTokenizer(), tmp_path / "train", "train", ORIGIN)
    expected = load_shards(tmp_path / "train").lengths.tolist()
    folder = tmp_path / "empty"
    folder.mkdir()
    write_shards(PAIRS, CodePointTokenizer(), folder, "train", ORIGIN)
    assert load_shards(folder).lengths.tolist() == expected


def test_rejects_a_split_without_text(tmp_path):
    with pytest.raises(UserError, match=r"train\.en and train\.de: no pair has text"):
        write_shards([("", "a")], CodePointTokenizer(), tmp_path / "t", "t", ORIGIN)
    assert list(tmp_path.iterdir()) == []


def test_rejects_another_vocabulary(directory):
    with pytest.raises(UserError, match="encoded with another vocabulary"):
        load_shards(directory, vocabulary_fingerprint="vocabulary-2")


def test_rejects_other_data(directory):
    with pytest.raises(UserError, match="made from other data of problem files"):
        load_shards(directory, problem_fingerprint="data-2")


FILES = ["train-00001-of-00002.tokens.npy", "train-00000-of-00002.lengths.npy"]


@pytest.mark.parametrize("name", FILES)
def test_rejects_a_missing_shard(directory, name):
    (directory / name).unlink()
    with pytest.raises(UserError, match=f"{name} is missing: run datagen again"):
        load_shards(directory)


@pytest.mark.parametrize("name", FILES)
def test_rejects_a_truncated_shard_with_both_sizes(directory, name):
    data = (directory / name).read_bytes()
    (directory / name).write_bytes(data[:-1])
    expected = f"{name} has {len(data) - 1} bytes instead of {len(data)}"
    with pytest.raises(UserError, match=expected):
        load_shards(directory)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("place", [0, -1])
def test_detects_a_flipped_bit(directory, name, place):
    data = bytearray((directory / name).read_bytes())
    data[place] ^= 4
    (directory / name).write_bytes(data)
    with pytest.raises(UserError, match=f"{name} is damaged"):
        load_shards(directory)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"format_version": 99}', '{"format_version": 1, "left_out": 3}'],
)
def test_rejects_a_damaged_manifest(directory, text):
    (directory / "manifest.json").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"manifest\.json .*run datagen again"):
        load_shards(directory)


@pytest.mark.parametrize(
    "path",
    [
        ("vocabulary_fingerprint",),
        ("pairs",),
        ("origin", "fingerprint"),
        ("left_out", "empty source", "first"),
        ("shards", 0, "pairs"),
        ("shards", 0, "tokens", "name"),
        ("shards", 1, "lengths", "bytes"),
        ("shards", 1, "lengths", "sha256"),
    ],
)
@pytest.mark.parametrize("value", [None, [["1"]], 1.5, {"a": 1}])
def test_rejects_a_manifest_with_values_of_other_types(directory, path, value):
    manifest = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
    *outer, name = path
    functools.reduce(lambda part, key: part[key], outer, manifest)[name] = value
    (directory / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(UserError, match=r"is not a manifest of shards"):
        load_shards(directory, "vocabulary-1", "data-1")


def test_rejects_a_directory_without_manifest(tmp_path):
    with pytest.raises(UserError, match=r"manifest\.json is missing: run datagen"):
        load_shards(tmp_path)
