"""Behavior common to both kinds of tokenizer, and loading of vocabulary files."""

import hashlib
import random

import pytest
import tensorflow as tf

from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.tokenizer import cut_rows
from t2t_repro.tokenizers.vocabulary import SUFFIXES, build_vocabulary

LINES = [
    f"{subject} {verb} {number} {thing} ." if number % 3 else f"Grüße, {subject}!"
    for number in range(40)
    for subject in ("the dog", "a man", "der Hund", "eine Frau")
    for verb in ("sees", "sieht")
    for thing in ("cats", "Katzen")
]
SIZES = {"sentencepiece": 340, "wordpiece": 120}
ODD_TEXTS = [
    "",
    " ",
    "   ",
    " the dog ",
    "  the   dog  ",
    "\tthe\tdog\t",
    "the\u00a0dog\u3000\u2028\x85",
    "a\nb\r\n",
    "\x00 \x7f",
    "</s> <pad> <unk> <s> <EOS> <pad>_ <EOS>_ <0x41>",
    "</s>",
    "<pad>",
    "<pad>_",
    "under_score __ \\u \\\\ \\92; \\1114112; &#92;",
    "▁ ▁the▁dog",
    "\ue000\ue001\ue002 \ue000▁",
    "日本語 テスト 😀👨‍👩‍👧 e\u0301 \ufeff\ufffd\uffff\U0010ffff",
    " \u2047 ",
    "x" * 500,
    "日" * 100,
]


def random_texts(count: int) -> list[str]:
    """Returns random texts; half of their characters are special ones."""
    generator = random.Random(1)
    special = " ▁\ue000\ue001\ue002_\\u;09az\t\n"

    def character() -> str:
        if generator.random() < 0.5:
            return generator.choice(special)
        code = generator.randrange(generator.choice([0x80, 0x3000, 0x110000]))
        return " " if 0xD800 <= code <= 0xDFFF else chr(code)

    return [
        "".join(character() for _ in range(generator.randrange(30)))
        for _ in range(count)
    ]


@pytest.fixture(scope="module", params=sorted(SUFFIXES))
def path(request, tmp_path_factory):
    kind = request.param
    path = tmp_path_factory.mktemp(kind) / f"vocabulary{SUFFIXES[kind]}"
    build_vocabulary(kind, LINES, SIZES[kind], path)
    return path


@pytest.fixture(scope="module")
def tokenizer(path):
    return load_tokenizer(path)


def to_strings(texts: tf.Tensor) -> list[str]:
    return [text.decode("utf-8") for text in texts.numpy()]


@pytest.mark.parametrize("dense", [False, True])
def test_decoding_restores_every_text(tokenizer, dense):
    texts = LINES + ODD_TEXTS + random_texts(1000)
    ids = tokenizer.encode(tf.constant(texts))
    assert to_strings(tokenizer.decode(ids.to_tensor() if dense else ids)) == texts


def test_rows_have_eos_only_at_the_end_and_no_padding(tokenizer):
    ids = tokenizer.encode(tf.constant(ODD_TEXTS + random_texts(200)))
    assert ids.dtype == tf.int32
    for row in ids.to_list():
        assert row[-1] == 1
        assert all(2 <= number < tokenizer.vocab_size for number in row[:-1])


def test_empty_text_is_encoded_as_only_eos(tokenizer):
    assert tokenizer.encode(tf.constant(["", ""])).to_list() == [[1], [1]]


def test_cut_rows_keeps_eos():
    rows = tf.ragged.constant([[7, 8, 9, 1], [7, 8, 1], [1]], dtype=tf.int32)
    assert cut_rows(rows, 3).to_list() == [[7, 8, 1], [7, 8, 1], [1]]
    assert cut_rows(rows, 1).to_list() == [[1], [1], [1]]
    assert cut_rows(rows[:0], 3).to_list() == []


def test_encodes_and_decodes_an_empty_batch(tokenizer):
    assert tokenizer.encode(tf.constant([], tf.string)).shape == (0, None)
    assert tokenizer.decode(tf.zeros([0, 3], tf.int32)).shape == (0,)
    assert to_strings(tokenizer.decode(tf.zeros([2, 0], tf.int32))) == ["", ""]


def test_decoding_stops_at_the_first_eos_and_ignores_padding(tokenizer):
    dog, man = tokenizer.encode(tf.constant(["the dog", "a man"])).to_list()
    ids = tf.ragged.constant(
        [[0, 0, *dog, *man], [1, *dog], [dog[0], 0, *dog[1:]], [0, 0, 0]],
        dtype=tf.int32,
    )
    assert to_strings(tokenizer.decode(ids)) == ["the dog", "", "the dog", ""]


def test_a_very_long_text_does_not_pad_the_batch(tokenizer):
    # A batch padded to its longest row would take gigabytes.
    texts = ["the dog"] * 10_000 + ["日" * 20_000]
    assert to_strings(tokenizer.decode(tokenizer.encode(tf.constant(texts)))) == texts


def test_decoding_ignores_ids_outside_the_vocabulary(tokenizer):
    (dog,) = tokenizer.encode(tf.constant(["the dog"])).to_list()
    ids = tf.constant([[-1, *dog[:-1], tokenizer.vocab_size, 2**31 - 1]])
    assert to_strings(tokenizer.decode(ids)) == ["the dog"]


def test_decoding_random_ids_returns_valid_utf8(tokenizer):
    generator = random.Random(2)
    rows = [
        [generator.randrange(tokenizer.vocab_size) for _ in range(20)]
        for _ in range(300)
    ]
    assert len(to_strings(tokenizer.decode(tf.constant(rows)))) == 300


def test_invalid_utf8_becomes_replacement_characters(tokenizer):
    ids = tokenizer.encode(tf.constant([b"dog \xff cat"]))
    assert to_strings(tokenizer.decode(ids)) == ["dog \ufffd cat"]


def test_encoding_works_inside_a_dataset(tokenizer):
    dataset = tf.data.Dataset.from_tensor_slices(LINES).batch(50)
    rows = [row for ids in dataset.map(tokenizer.encode) for row in ids.to_list()]
    assert rows == tokenizer.encode(tf.constant(LINES)).to_list()


def test_many_tokenizers_cause_no_retracing_warning(path, tmp_path, tensorflow_log):
    kind = next(each for each in SUFFIXES if path.suffix == SUFFIXES[each])
    for number in range(8):
        other = tmp_path / f"{number}{path.suffix}"
        build_vocabulary(kind, LINES, SIZES[kind] + number, other)
        tokenizer = load_tokenizer(other)
        ids = tokenizer.encode(tf.constant(LINES[:2]))
        assert to_strings(tokenizer.decode(ids)) == LINES[:2]
    assert tensorflow_log.text == ""


def test_saved_tokenizer_equals_the_original(tokenizer, path, tmp_path):
    tokenizer.save(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    assert (tmp_path / path.name).read_bytes() == path.read_bytes()
    reloaded = load_tokenizer(tmp_path)
    assert reloaded.fingerprint == hashlib.sha256(path.read_bytes()).hexdigest()
    assert reloaded.vocab_size == tokenizer.vocab_size


def test_rejects_a_missing_vocabulary(tmp_path):
    with pytest.raises(UserError, match=r"nowhere\.model: no such vocabulary"):
        load_tokenizer(tmp_path / "nowhere.model")


def test_rejects_an_empty_vocabulary(tmp_path):
    (tmp_path / "a.model").touch()
    with pytest.raises(UserError, match=r"a\.model: the vocabulary file is empty"):
        load_tokenizer(tmp_path)


def test_rejects_a_file_with_another_suffix(tmp_path):
    (tmp_path / "a.txt").write_text("a")
    with pytest.raises(UserError, match=r"a\.txt: the name of .* must be \*\.mod"):
        load_tokenizer(tmp_path / "a.txt")


def test_rejects_a_directory_without_exactly_one_vocabulary(tmp_path):
    with pytest.raises(UserError, match="found none"):
        load_tokenizer(tmp_path)
    (tmp_path / "a.model").touch()
    (tmp_path / "b.subwords").touch()
    with pytest.raises(UserError, match=r"found a\.model, b\.subwords"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("length", [100, 1000, 2000])
def test_rejects_a_truncated_vocabulary(path, tmp_path, length):
    damaged = tmp_path / path.name
    contents = path.read_bytes()
    damaged.write_bytes(contents[: len(contents) * length // 4000])
    with pytest.raises(UserError, match=rf"{path.name}: "):
        load_tokenizer(damaged)
