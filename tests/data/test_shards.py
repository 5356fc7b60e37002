"""Writing and reading of shards; rejection of damaged files."""

import hashlib
import json

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.data import shard_encoding
from t2t_repro.data.manifest import Origin
from t2t_repro.data.shards import load_shards, write_shards
from t2t_repro.system.errors import UserError

ORIGIN = Origin("files", "data-1", "train.en and train.de", "en", "de")
PAIRS = [("a b", "ä"), ("", "x"), ("c", " "), ("d e f", "g h"), ("é", "i j k l")]


class CodePointTokenizer:
    """Tokenizer with one token per character: code point + 2; EOS at the end."""

    def __init__(self, vocab_size=60_000, fingerprint="vocabulary-1"):
        self.vocab_size = vocab_size
        self.fingerprint = fingerprint

    def encode(self, text):
        """Encodes string (batch,) to ragged int32 (batch, None)."""
        points = tf.strings.unicode_decode(text, "UTF-8") + 2
        return tf.concat([points, tf.ones_like(points[:, :1])], axis=1)

    @property
    def target(self):
        """Tokenizer of the targets."""
        return self


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


def test_many_threads_encode_without_a_warning(tmp_path, sixteen_cores, monkeypatch):
    """TensorFlow would count threads that wait for a trace as retracings."""
    monkeypatch.setattr(shard_encoding, "PAIRS_PER_CALL", 2)
    write_shards(PAIRS * 20, CodePointTokenizer(), tmp_path / "train", "train", ORIGIN)
    assert sixteen_cores.text == ""
    pairs = load_shards(tmp_path / "train", "vocabulary-1", "data-1")
    assert pairs.lengths.tolist() == [[4, 2], [6, 4], [2, 8]] * 20


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


def test_rejects_a_directory_without_manifest(tmp_path):
    with pytest.raises(UserError, match=r"manifest\.json is missing: run datagen"):
        load_shards(tmp_path)
