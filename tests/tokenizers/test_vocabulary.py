"""Vocabulary building, compared with tensor2tensor and on invalid texts."""

import itertools
import json
import subprocess
import sys

import pytest
import sentencepiece
import tensorflow as tf

from t2t_repro.system.atomic_file import read_lines
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers import vocabulary
from t2t_repro.tokenizers.line_samples import sample_by_size
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.vocabulary import build_vocabulary
from t2t_repro.tokenizers.word_piece_vocabulary import build_word_pieces
from tests import run_command

LINES = [f"the dog number {number} sees {number * 7} cats" for number in range(100)]


def test_word_pieces_match_tensor2tensor(shared_dir, tmp_path):
    golden = shared_dir / "t2t/golden"
    path = tmp_path / "built.subwords"
    build_vocabulary("wordpiece", read_lines(golden / "built_from.txt"), 600, path)
    assert path.read_bytes() == (golden / "built.600.subwords").read_bytes()

    case = json.loads((golden / "built_vocab_encode.json").read_text())
    ids = load_tokenizer(path).encode(
        tf.constant([entry["text"] for entry in case["cases"]])
    )
    assert ids.to_list() == [[*entry["ids"], 1] for entry in case["cases"]]


def test_occurrences_inside_a_longer_piece_do_not_count():
    # Every vocabulary contains the 2 special pieces and 24 characters (14 of escapes,
    # "abc", and 7 more of the special pieces). "abcd_" occurs 8 times. It is the
    # longest candidate, so its count is subtracted from a, ab, abc and abcd. The first
    # iteration also adds its suffixes (bcd_, cd_, d_), but later no piece starts there.
    pieces = build_word_pieces(["abcd abcd"] * 4, 27)
    assert pieces[:3] == ["<pad>_", "<EOS>_", "abcd_"]
    assert pieces[3:] == sorted("\\_u;0123456789abc<pd>EOS", reverse=True)


def test_a_vocabulary_within_one_percent_is_close_enough():
    """The first one has the words that occur 500 times, the second one 750 times."""
    words = [a + b for a, b in itertools.product("abcdefghijk", repeat=2)][:69]
    lines = [" ".join(words)] * 700 + [" ".join(words[1:])] * 400
    assert len(build_word_pieces(lines, 101)) == 102
    assert len(build_word_pieces(lines, 100)) == 101


def test_line_end_in_the_text_is_escaped(tmp_path):
    path = tmp_path / "v.subwords"
    build_vocabulary("wordpiece", ["one\ntwo", "one\n\ntwo"], 40, path)
    tokenizer = load_tokenizer(path)
    ids = tokenizer.encode(tf.constant(["one\ntwo"]))
    assert tokenizer.decode(ids).numpy().tolist() == [b"one\ntwo"]


def test_sample_contains_both_of_two_alternating_languages():
    lines = [f"{'en' if index % 2 else 'de'} {index:05}" for index in range(10_000)]
    sample = list(sample_by_size(iter(lines), 8 * 1000))
    english = sum(line.startswith("en") for line in sample)
    assert 400 <= len(sample) <= 1000
    assert 0.4 < english / len(sample) < 0.6
    assert sample == sorted(sample, key=lines.index)
    assert sample == list(sample_by_size(lines, 8 * 1000))


def test_small_text_is_not_sampled():
    assert list(sample_by_size(LINES, 10**6)) == LINES


@pytest.mark.parametrize("name", ["v.model", "v.subwords"])
def test_same_text_produces_identical_files(tmp_path, name):
    kind = "sentencepiece" if name == "v.model" else "wordpiece"
    contents = []
    for lines in (LINES, iter(LINES)):
        build_vocabulary(kind, lines, 320, tmp_path / name)
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1]
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.medium
def test_another_process_draws_the_same_sample_for_sentencepiece(tmp_path, monkeypatch):
    lines = [f"{number} {number**2 % 1009}" for number in range(1000)]
    code = f"""
from t2t_repro.tokenizers import vocabulary
vocabulary.MAX_LINES = 200
vocabulary.build_vocabulary("sentencepiece", {lines}, 300, "{tmp_path}/v.model")
"""
    subprocess.run([sys.executable, "-c", code], cwd=run_command.ROOT, check=True)
    monkeypatch.setattr(vocabulary, "MAX_LINES", 200)
    build_vocabulary("sentencepiece", iter(lines), 300, tmp_path / "w.model")
    sampled = (tmp_path / "w.model").read_bytes()
    assert sampled == (tmp_path / "v.model").read_bytes()
    build_vocabulary("sentencepiece", lines[:200], 300, tmp_path / "w.model")
    assert sampled != (tmp_path / "w.model").read_bytes()


def test_sentencepiece_has_exactly_the_requested_size(tmp_path):
    build_vocabulary("sentencepiece", LINES, 320, tmp_path / "v.model")
    assert load_tokenizer(tmp_path).vocab_size == 320


def test_error_about_a_large_size_names_the_largest_possible_size(tmp_path):
    path = tmp_path / "v.model"
    with pytest.raises(UserError, match="vocab_size 9000 is too large") as caught:
        build_vocabulary("sentencepiece", LINES, 9000, path)
    assert not list(tmp_path.iterdir())
    largest = int(str(caught.value).rsplit(" ", 1)[1])
    build_vocabulary("sentencepiece", LINES, largest, path)
    assert load_tokenizer(path).vocab_size == largest


def test_error_about_a_small_size_names_the_required_size(tmp_path):
    # 256 bytes, 3 special ids, 20 different characters and U+2581 for the space.
    characters = len(set("".join(LINES)) - {" "}) + 1
    with pytest.raises(UserError, match=f"common character, {259 + characters} entr"):
        build_vocabulary("sentencepiece", LINES, 100, tmp_path / "v.model")


@pytest.mark.parametrize("name", ["v.model", "v.subwords"])
@pytest.mark.parametrize("lines", [[], ["", "  "]])
def test_rejects_text_of_blank_lines(tmp_path, name, lines):
    kind = "sentencepiece" if name == "v.model" else "wordpiece"
    with pytest.raises(UserError, match="no text to build a vocabulary from"):
        build_vocabulary(kind, lines, 300, tmp_path / name)


@pytest.mark.parametrize("name", ["v.model", "v.subwords"])
def test_length_of_a_line_is_in_bytes(tmp_path, name):
    kind = "sentencepiece" if name == "v.model" else "wordpiece"
    # The euro sign has three bytes: 16,386 bytes are more than 16,384.
    with pytest.raises(UserError, match="more than 16,384 bytes"):
        build_vocabulary(kind, ["\N{EURO SIGN}" * 5462], 300, tmp_path / name)


def test_rejects_an_unknown_kind(tmp_path):
    with pytest.raises(UserError, match="unknown kind of vocabulary 'bpe'"):
        build_vocabulary("bpe", LINES, 300, tmp_path / "v.model")


def test_rejects_a_file_with_the_suffix_of_another_kind(tmp_path):
    with pytest.raises(UserError, match=r"the suffix .* must be \.subwords"):
        build_vocabulary("wordpiece", LINES, 300, tmp_path / "v.model")


def test_rejects_a_missing_directory(tmp_path):
    path = tmp_path / "nowhere" / "v.subwords"
    with pytest.raises(UserError, match=r"cannot write .*v\.subwords: No such file"):
        build_vocabulary("wordpiece", LINES, 300, path)


@pytest.mark.parametrize("name", ["v.model", "v.subwords"])
def test_skips_a_line_of_a_million_characters(tmp_path, name):
    """Choosing word pieces of such a word would take days."""
    kind, size = ("sentencepiece", 300) if name == "v.model" else ("wordpiece", 120)
    for folder, lines in (("with", [*LINES, "x" * 1_000_000]), ("without", LINES)):
        (tmp_path / folder).mkdir()
        build_vocabulary(kind, lines, size, tmp_path / folder / name)
    actual, expected = (tmp_path / folder / name for folder in ("with", "without"))
    assert actual.read_bytes() == expected.read_bytes()


def test_whole_tags_can_mix_letters_and_other_characters(tmp_path):
    lines = ["S NP PRP$ NN /NP VP VBZ /VP /S", "the dog barks"] * 20
    pieces = {}
    for whole_tags in (False, True):
        path = tmp_path / f"{whole_tags}.model"
        build_vocabulary("sentencepiece", lines, 310, path, whole_tags=whole_tags)
        processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
        pieces[whole_tags] = processor.encode("PRP$ /NP /VP", out_type=str)
    assert pieces[True] == ["\u2581PRP$", "\u2581/NP", "\u2581/VP"]
    assert all("/NP" not in piece for piece in pieces[False])
