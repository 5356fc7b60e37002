"""Separate vocabularies encode each side like its own vocabulary file."""

import pytest
import tensorflow as tf

from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.separate_tokenizer import join_vocabularies
from t2t_repro.tokenizers.vocabulary import SUFFIXES, build_vocabulary
from tests import tiny

SIZES = {"sentencepiece": 290, "wordpiece": 60}
TEXTS = ["one two", "fünf sechs sieben", " 日本 \u2581_\\ ", ""]


def write_sides(kind, folder):
    """Writes a `*.sides` file; returns the tokenizers of the two files it is from."""
    sides = []
    columns = zip(*tiny.pairs("train"), strict=True)
    for side, lines in zip(("source", "target"), columns, strict=True):
        path = folder.parent / f"{folder.name}.{side}{SUFFIXES[kind]}"
        build_vocabulary(kind, lines, SIZES[kind], path)
        sides.append(load_tokenizer(path))
    (folder / "vocab.sides").write_bytes(join_vocabularies(*sides))
    return sides


@pytest.mark.parametrize("kind", SIZES)
def test_equals_the_vocabulary_of_each_side(kind, tmp_path):
    folder = tmp_path / "joined"
    folder.mkdir()
    sides = write_sides(kind, folder)
    both = load_tokenizer(folder)
    assert both.vocab_size == sides[0].vocab_size
    assert both.target_vocab_size == sides[1].vocab_size
    assert sides[0].pieces != sides[1].pieces
    assert both.unknown_id == sides[0].unknown_id
    texts = tf.constant(TEXTS)
    for joined, alone in (
        *((both, sides[0]), (both.source, sides[0])),
        (both.target, sides[1]),
    ):
        assert joined.pieces == alone.pieces
        ids = joined.encode(texts)
        assert ids.to_list() == alone.encode(texts).to_list()
        assert [text.decode() for text in joined.decode(ids).numpy()] == TEXTS
    both.save(tmp_path)
    assert load_tokenizer(tmp_path / "vocab.sides").fingerprint == both.fingerprint


def test_rejects_damaged_files_and_different_kinds(tmp_path):
    (source, _), (pieces, _) = (write_sides(kind, tmp_path) for kind in SIZES)
    with pytest.raises(UserError, match=r"must be \*\.model or \*\.subwords files"):
        join_vocabularies(source, pieces)
    path = tmp_path / "vocab.sides"
    whole = path.read_text(encoding="utf-8")
    for damaged in ("[]", "{}", whole[:-9], whole.replace("separate", "other")):
        path.write_text(damaged, encoding="utf-8")
        with pytest.raises(UserError, match=r"sides: not a file of two vocabularies"):
            load_tokenizer(path)
    path.write_text(whole.replace("JzxwYWQ+", "JzxwYWE+"), encoding="utf-8")
    with pytest.raises(UserError, match=r"vocab\.sides: source\.subwords: "):
        load_tokenizer(path)
