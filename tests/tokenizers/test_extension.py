"""Extended vocabularies keep all old ids, and spell words as the means say."""

import numpy as np
import pytest
import tensorflow as tf
from sentencepiece import SentencePieceProcessor

from t2t_repro.interop.marian.importer import read
from t2t_repro.models.vocabulary_rows import spell_rows
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers import extension
from t2t_repro.tokenizers.extension import (
    extend_vocabulary,
    read_words,
    select_words,
)
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.marian_tokenizer import MarianTokenizer
from t2t_repro.tokenizers.vocabulary import build_vocabulary
from tests import tiny
from tests.interop.marian.small_marian import SmallMarian
from tests.tokenizers.test_separate_tokenizer import write_sides

# The vocabularies lack the letters of some words.
WORDS = ["nineteen", "elf", "Übung", "日本", "one"]
TEXTS = [
    *(side for pair in tiny.pairs("train") for side in pair),
    "nineteen nineteenth one nineteen",
    "nineteens elf, elfth Übung! Übungen 日本 日本語",
    "  one  \u2581elf \ue000 \ue001 nineteen\tbell",
    "",
]


@pytest.fixture(
    scope="module", params=["sentencepiece", "wordpiece", "sides", "marian"]
)
def tokenizer(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocabulary")
    if request.param == "marian":
        return read(SmallMarian(size=60).write(folder / "marian")).tokenizer
    if request.param == "sides":
        write_sides("wordpiece", folder)
        return load_tokenizer(folder)
    suffix = {"sentencepiece": "model", "wordpiece": "subwords"}[request.param]
    lines = [side for pair in tiny.pairs("train") for side in pair]
    build_vocabulary(request.param, lines, 300, folder / f"vocab.{suffix}")
    return load_tokenizer(folder)


def test_old_text_keeps_its_ids_and_words_become_one_piece(tokenizer, tmp_path):
    extended = extend_vocabulary(tokenizer, WORDS)
    new, size = extended.tokenizer, tokenizer.vocab_size
    assert new.pieces[:size] == tokenizer.pieces
    assert new.vocab_size == size + len(extended.source)
    assert new.fingerprint != tokenizer.fingerprint
    new.save(tmp_path)
    assert load_tokenizer(tmp_path).pieces == new.pieces
    rows = new.encode(tf.constant(WORDS)).to_list()
    assert [len(row) for row in rows] == [2] * len(WORDS)
    # SmallMarian's model joins letters that it lacks to one <unk>.
    texts = TEXTS[:-3] if isinstance(tokenizer, MarianTokenizer) else TEXTS
    before = tokenizer.encode(tf.constant(texts))
    after = new.encode(tf.constant(texts))
    assert after.values.shape[0] < before.values.shape[0]
    spelled = [
        [old for n in row for old in ([n] if n < size else extended.source[n - size])]
        for row in after.to_list()
    ]
    assert spelled == before.to_list()
    assert [text.decode() for text in new.decode(after).numpy()] == texts


def test_a_unigram_model_prefers_a_new_piece_to_its_spelling(tmp_path):
    folder = SmallMarian(size=60).write(tmp_path / "marian")
    old = (folder / "source.spm").read_bytes()
    new, spellings = extension._extend_model(old, ["nineteen", "elf"], "")
    before, after = (SentencePieceProcessor(model_proto=each) for each in (old, new))
    for word, count in (("nineteen", 5), ("elf", 4)):
        pieces = before.encode(word, out_type=str)
        assert spellings[f"\u2581{word}"] == pieces and len(pieces) == count
        total = sum(before.get_score(before.piece_to_id(piece)) for piece in pieces)
        score = after.get_score(after.piece_to_id(f"\u2581{word}"))
        assert score == pytest.approx(total + 0.01 * (count - 1), abs=1e-5)


def test_target_text_uses_the_new_pieces_too(tokenizer):
    target = extend_vocabulary(tokenizer, WORDS).tokenizer.target
    rows = target.encode(tf.constant(WORDS)).to_list()
    assert [len(row) for row in rows] == [2] * len(WORDS)


def test_new_rows_are_means_of_old_rows():
    table = np.float32([[0, 0], [1, 2], [3, 4], [6, 9]])
    spellings = {"source": [[3], [1, 2]], "target": [[0], [1, 2, 3], [3, 3]]}
    for name, expected in (
        ("embedding/table", [[0, 0], [10 / 3, 5], [6, 9]]),
        ("input_embedding/table", [[6, 9], [2, 3]]),
        ("encoder/layer_0/feed_forward/hidden/kernel", table),
    ):
        rows = spell_rows(name, table, spellings)
        np.testing.assert_array_equal(rows, np.float32(expected))
    bias = spell_rows("softmax/bias", np.float32([-9999, 1, 2, 6]), spellings)
    assert bias.tolist() == [-9999, 3, 6]


def test_selects_the_words_that_save_the_most_tokens(tokenizer):
    pairs = [("ab-xyzxyz cd", "ab"), ("one xyzxyz one", "xyzxyz,xyzxyz")]
    lengths = {
        (n, word): len(side.encode(tf.constant([word])).to_list()[0]) - 1
        for word in ("ab", "cd", "one", "xyzxyz")
        for n, side in enumerate((tokenizer, tokenizer.target))
    }
    counts = {(0, "ab"): 1, (1, "ab"): 1, (0, "cd"): 1, (0, "one"): 2}
    counts |= {(0, "xyzxyz"): 2, (1, "xyzxyz"): 2}
    saved = dict.fromkeys(("ab", "cd", "one", "xyzxyz"), 0)
    for (side, word), count in counts.items():
        saved[word] += count * (lengths[side, word] - 1)
    expected = [word for word in sorted(saved, key=lambda w: -saved[w]) if saved[word]]
    assert select_words(tokenizer, pairs, 9) == expected
    assert select_words(tokenizer, pairs, 1) == ["xyzxyz"]
    assert select_words(tokenizer, [(".", "")], 1) == []


def test_rejects_what_cannot_be_added(tmp_path, tokenizer):
    file = tmp_path / "words.txt"
    for contents, message in (
        (b"good\n\n", None),
        (b" \n", "contains no tokens; write one per line"),
        (b"a\xff\n", "is not valid UTF-8; convert it"),
        ("good\na\u2581b\n".encode(), ":2: U\\+2581 and U\\+E000 cannot be parts"),
    ):
        file.write_bytes(contents)
        if message is None:
            assert read_words(file) == ["good"]
        else:
            with pytest.raises(UserError, match=message):
                read_words(file)
    with pytest.raises(UserError, match="No such file"):
        read_words(tmp_path / "absent")
    if tokenizer.file_name.endswith(".subwords"):
        with pytest.raises(UserError, match="the token 'a-b' mixes letters"):
            extend_vocabulary(tokenizer, ["a-b"])
    pieces = MarianTokenizer.from_pieces(None, None, ["<pad>", "</s>", "<unk>", "a@@"])
    with pytest.raises(UserError, match="of subword-nmt cannot be extended"):
        extend_vocabulary(pieces, ["ab"])
