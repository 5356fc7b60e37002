"""The tokenizers without TensorFlow equal those of the graph."""

import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.serving.sanitize import note_unread_labels
from t2t_repro.tokenizers import plain_tokenizer
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.marian_tokenizer import MarianTokenizer
from t2t_repro.tokenizers.vocabulary import build_vocabulary
from tests import tiny
from tests.tokenizers import test_marian_tokenizer, test_separate_tokenizer

TEXTS = [
    "the dog sees a cat",
    "one two, three (four)  five_six \\ 7;8 \\u \\92;",
    " leading and trailing ",
    "fünf 👩‍👩‍👧 אחת ثلاثة 1½ \u2028 \x85 \t",
    "</s> <pad> <unk> <EOS>_ \u2581one",
    ">>deu<< a cat",
    ">>fra<<>>deu<< a cat >>deu<<",
    "\x00nul\x01",
    "line\nbreak\r\n",
    "x" * 70_000,
]
SPECIAL_SPELLINGS = ["\\u", "\\\\u", "\\\\\\u", "\\228;", "\\0000228;", "\\9", "\\;"]
SPECIAL_SPELLINGS += ["\\55296;", "\\1114112;", "\\99999999999;", "\\10;", "__"]


@pytest.fixture(
    scope="module", params=["sentencepiece", "wordpiece", "sides", "marian"]
)
def tokenizer(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    lines = [side for pair in tiny.pairs("train") for side in pair]
    if request.param == "marian":
        test_marian_tokenizer.two_vocabularies().save(folder)
    elif request.param == "wordpiece":
        build_vocabulary("wordpiece", lines, 90, folder / "vocab.subwords")
    elif request.param == "sides":
        test_separate_tokenizer.write_sides("wordpiece", folder)
    else:
        build_vocabulary("sentencepiece", lines, 300, folder / "vocab.model")
    return load_tokenizer(folder)


@pytest.fixture(scope="module")
def plain(tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    tokenizer.save_for_clients(folder)
    return plain_tokenizer.load(folder)


def test_encodes_like_the_graph(tokenizer, plain):
    texts = [text[:65_536] for text in TEXTS]
    expected = tokenizer.encode(tf.constant(texts)).to_list()
    assert [plain.encode(text) for text in TEXTS] == expected
    expected = tokenizer.target.encode(tf.constant(texts)).to_list()
    assert [plain.encode_target(text) for text in TEXTS] == expected


def test_only_ascii_white_space_separates_given_pieces(tmp_path):
    pieces = ["<pad>", "</s>", "<unk>", "lo@@", "w", "lo@@\u00a0w", "."]
    graph = MarianTokenizer.from_pieces(None, None, pieces, None)
    graph.save_for_clients(tmp_path)
    texts = ["lo@@ w\t.", "lo@@\u00a0w .", "w\u2028.\x85\x1c \v w"]
    expected = graph.encode(tf.constant(texts)).to_list()
    assert expected[0] == [3, 4, 6, 1] and expected[1] == [5, 6, 1]
    plain = plain_tokenizer.load(tmp_path)
    assert [plain.encode(text) for text in texts] == expected
    decoded = graph.decode(tf.ragged.constant(expected, tf.int32))
    texts = [text.decode() for text in decoded.numpy().tolist()]
    assert texts[0] == "lo@@ w ."
    assert [plain.decode(ids) for ids in expected] == texts


def test_a_blank_text_is_only_the_end(plain):
    assert plain.encode("") == plain.encode(" \t\u3000") == [1]


def test_decodes_any_ids_like_the_graph(tokenizer, plain):
    generator = np.random.default_rng(0)
    size = tokenizer.target.vocab_size
    rows = generator.integers(-2, size + 3, (200, 12)).astype(np.int32)
    rows[::2][rows[::2] == 1] = 2
    # The graph drops a space before the first token, which no encoded text has.
    rows[:, 0] = tokenizer.target.encode(["one"])[0, 0]
    expected = tokenizer.target.decode(rows).numpy()
    lines = [text.decode().replace("\r", " ").replace("\n", " ") for text in expected]
    assert [plain.decode(row) for row in rows] == lines


def test_names_labels_like_the_graph(tokenizer, plain):
    texts = [*TEXTS, " >>deu<< a", ">>xxx<< a", "\t>>xxx<<", "a >>xxx<<", ">>x x<<"]
    notes = note_unread_labels(tokenizer, tf.constant(texts), after_space=False).numpy()
    assert [plain.note(text) for text in texts] == [note.decode() for note in notes]


def test_unescapes_like_the_graph(tmp_path):
    build_vocabulary("wordpiece", ["one two"], 60, tmp_path / "vocab.subwords")
    numbers = {piece: n for n, piece in enumerate(load_tokenizer(tmp_path).pieces)}
    rows = [[numbers[character] for character in row] for row in SPECIAL_SPELLINGS]
    graph, plain = load_tokenizer(tmp_path), plain_tokenizer.load(tmp_path)
    expected = graph.decode(tf.ragged.constant(rows, tf.int32)).numpy()
    lines = [text.decode().replace("\n", " ") for text in expected]
    assert [plain.decode(row) for row in rows] == lines


@pytest.mark.parametrize(
    ("line", "piece"),
    [
        ("'a_'", "a_"),
        ('"a_"', "a_"),
        ("a_ ", "a_"),
        ("'", "'"),
        ("'''", "'"),
        ("''", ""),
        ("'a\"", "'a\""),
        ("aba", "aba"),
        ("", ""),
    ],
)
def test_removes_the_quotes_of_a_piece(line, piece):
    assert plain_tokenizer.unquote(line) == piece


def test_the_copy_needs_neither_tensorflow_nor_this_package(tokenizer, tmp_path):
    tokenizer.save_for_clients(tmp_path)
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import plain_tokenizer\n"
        f"print(plain_tokenizer.load({str(tmp_path)!r}).encode('a cat'))\n"
        "sys.exit(any(name in sys.modules for name in ('tensorflow', 't2t_repro')))"
    )
    command = [sys.executable, "-P", "-c", program]
    process = subprocess.run(command, capture_output=True, env={}, check=False)
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout) == tokenizer.encode(["a cat"])[0].numpy().tolist()


@pytest.mark.parametrize(
    ("name", "contents", "message"),
    [
        ("vocab.subwords", b"'<pad>_'\n'<EOS>_'\n'a'\n", "escapes are missing"),
        ("vocab.subwords", b"\xff", "not a vocabulary, or damaged"),
        ("vocab.model", b"junk", "not a vocabulary, or damaged"),
        ("vocab.marian", b"{}", "not a vocabulary, or damaged"),
        ("vocab.txt", b"", "0 vocabulary files"),
    ],
)
def test_rejects_other_files(tmp_path, name, contents, message):
    (tmp_path / name).write_bytes(contents)
    with pytest.raises(ValueError, match=message):
        plain_tokenizer.load(tmp_path)


def test_pads_to_the_longest_row():
    assert plain_tokenizer.pad([[5, 1], [1], [7, 8, 1]]) == [
        [5, 1, 0],
        [1, 0, 0],
        [7, 8, 1],
    ]
    assert plain_tokenizer.pad([]) == []
