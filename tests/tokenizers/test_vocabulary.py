"""Building vocabularies: against tensor2tensor's, and on texts of any size."""

import json

import pytest
import sentencepiece
import tensorflow as tf

from t2t_repro.system.atomic_file import read_lines
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.vocabulary import build_vocabulary
from t2t_repro.tokenizers.word_piece_vocabulary import build_word_pieces, sample_lines

LINES = [f"the dog number {number} sees {number * 7} cats" for number in range(100)]


def test_word_pieces_are_the_ones_that_tensor2tensor_builds(shared_dir, tmp_path):
    golden = shared_dir / "t2t/golden"
    path = tmp_path / "built.subwords"
    build_vocabulary("wordpiece", read_lines(golden / "built_from.txt"), 600, path)
    assert path.read_bytes() == (golden / "built.600.subwords").read_bytes()

    case = json.loads((golden / "built_vocab_encode.json").read_text())
    ids = load_tokenizer(path).encode(
        tf.constant([entry["text"] for entry in case["cases"]])
    )
    assert ids.to_list() == [[*entry["ids"], 1] for entry in case["cases"]]


def test_a_piece_must_occur_often_enough_by_itself():
    # By hand: 24 single characters (14 of escapes, "abc", and 7 more of the special
    # pieces) and the 2 special pieces are always in. The word is spelled "abcd_", 8
    # times; being the longest, it takes all 8 from a, ab, abc and abcd. In the first
    # round its ends (bcd_, cd_, d_) are pieces too, later no piece starts there.
    pieces = build_word_pieces(["abcd abcd"] * 4, 27)
    assert pieces[:3] == ["<pad>_", "<EOS>_", "abcd_"]
    assert pieces[3:] == sorted("\\_u;0123456789abc<pd>EOS", reverse=True)


def test_a_line_end_in_the_text_does_not_break_the_file(tmp_path):
    path = tmp_path / "v.subwords"
    build_vocabulary("wordpiece", ["one\ntwo", "one\n\ntwo"], 40, path)
    tokenizer = load_tokenizer(path)
    ids = tokenizer.encode(tf.constant(["one\ntwo"]))
    assert tokenizer.decode(ids).numpy().tolist() == [b"one\ntwo"]


def test_a_sample_has_both_of_two_languages_that_take_turns():
    lines = [f"{'en' if index % 2 else 'de'} {index:05}" for index in range(10_000)]
    sample = list(sample_lines(iter(lines), 8 * 1000))
    english = sum(line.startswith("en") for line in sample)
    assert 400 <= len(sample) <= 1000
    assert 0.4 < english / len(sample) < 0.6
    assert sample == sorted(sample, key=lines.index)
    assert sample == list(sample_lines(lines, 8 * 1000))


def test_a_small_text_is_used_whole():
    assert list(sample_lines(LINES, 10**6)) == LINES


@pytest.mark.parametrize("name", ["v.model", "v.subwords"])
def test_the_same_text_gives_the_same_bytes(tmp_path, name):
    kind = "sentencepiece" if name == "v.model" else "wordpiece"
    contents = []
    for lines in (LINES, iter(LINES)):
        build_vocabulary(kind, lines, 320, tmp_path / name)
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1]
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_sentencepiece_has_exactly_the_size_asked_for(tmp_path):
    build_vocabulary("sentencepiece", LINES, 320, tmp_path / "v.model")
    assert load_tokenizer(tmp_path).vocab_size == 320


def test_a_size_too_large_names_the_largest_and_that_one_works(tmp_path):
    path = tmp_path / "v.model"
    with pytest.raises(UserError, match="vocab_size 9000 is too large") as caught:
        build_vocabulary("sentencepiece", LINES, 9000, path)
    assert not list(tmp_path.iterdir())
    largest = int(str(caught.value).rsplit(" ", 1)[1])
    build_vocabulary("sentencepiece", LINES, largest, path)
    assert load_tokenizer(path).vocab_size == largest


def test_a_size_too_small_names_what_is_needed(tmp_path):
    # 256 bytes, 3 special ids, 20 different characters and the space's mark.
    characters = len(set("".join(LINES)) - {" "}) + 1
    with pytest.raises(UserError, match=f"common character, {259 + characters} entr"):
        build_vocabulary("sentencepiece", LINES, 100, tmp_path / "v.model")


@pytest.mark.parametrize("name", ["v.model", "v.subwords"])
@pytest.mark.parametrize("lines", [[], ["", "  "]])
def test_no_text_is_no_vocabulary(tmp_path, name, lines):
    kind = "sentencepiece" if name == "v.model" else "wordpiece"
    with pytest.raises(UserError, match="no text to build a vocabulary from"):
        build_vocabulary(kind, lines, 300, tmp_path / name)


def test_an_unknown_kind_is_refused(tmp_path):
    with pytest.raises(UserError, match="unknown kind of vocabulary 'bpe'"):
        build_vocabulary("bpe", LINES, 300, tmp_path / "v.model")


def test_a_name_that_does_not_suit_the_kind_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"is named \*\.subwords"):
        build_vocabulary("wordpiece", LINES, 300, tmp_path / "v.model")


def test_a_directory_that_is_not_there_is_named(tmp_path):
    path = tmp_path / "nowhere" / "v.subwords"
    with pytest.raises(UserError, match=r"cannot write .*v\.subwords: No such file"):
        build_vocabulary("wordpiece", LINES, 300, path)


@pytest.mark.parametrize("name", ["v.model", "v.subwords"])
def test_a_line_of_a_million_characters_is_no_text_to_build_from(tmp_path, name):
    """The choice of word pieces would take days over such a word."""
    kind, size = ("sentencepiece", 300) if name == "v.model" else ("wordpiece", 120)
    for folder, lines in (("with", [*LINES, "x" * 1_000_000]), ("without", LINES)):
        (tmp_path / folder).mkdir()
        build_vocabulary(kind, lines, size, tmp_path / folder / name)
    found, expected = (tmp_path / folder / name for folder in ("with", "without"))
    assert found.read_bytes() == expected.read_bytes()


def test_tags_can_be_pieces_whatever_characters_they_mix(tmp_path):
    lines = ["S NP PRP$ NN /NP VP VBZ /VP /S", "the dog barks"] * 20
    found = {}
    for whole_tags in (False, True):
        path = tmp_path / f"{whole_tags}.model"
        build_vocabulary("sentencepiece", lines, 310, path, whole_tags=whole_tags)
        processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
        found[whole_tags] = processor.encode("PRP$ /NP /VP", out_type=str)
    assert found[True] == ["\u2581PRP$", "\u2581/NP", "\u2581/VP"]
    assert all("/NP" not in piece for piece in found[False])
