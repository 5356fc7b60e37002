"""Tests of SentencePiece's options as hyper-parameters."""

import pytest
import tensorflow as tf

from t2t_repro.hparams import HParams
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.vocabulary import PieceOptions, build_vocabulary

LINES = ["the year 1984 1984 \ufb01ne <br> fine", "in 1984 the \ufb01ne year"] * 20
LINES += ["\u00e9"]


def spell(folder, text, **options):
    """Returns the pieces and the restored text of a new vocabulary."""
    path = folder / "v.model"
    build_vocabulary("sentencepiece", LINES, 300, path, False, PieceOptions(**options))
    tokenizer = load_tokenizer(path)
    ids = tokenizer.encode(tf.constant([text]))
    pieces = [tokenizer.pieces[n] for n in ids.to_list()[0][:-1]]
    return pieces, tokenizer.decode(ids).numpy()[0].decode()


def test_defaults_build_the_same_file(tmp_path):
    for name, options in (("a", None), ("b", PieceOptions())):
        path = tmp_path / f"{name}.model"
        build_vocabulary("sentencepiece", LINES, 300, path, options=options)
    a, b = ((tmp_path / f"{name}.model").read_bytes() for name in "ab")
    assert a == b
    assert PieceOptions().label == ""
    assert PieceOptions(split_digits=True).label.startswith("-")


def test_each_option_has_its_effect(tmp_path):
    """U+FB01 is a ligature, which NFKC replaces by two letters."""
    text = "1984 \ufb01ne<br>"
    pieces, restored = spell(tmp_path, text)
    assert "\u25811984" in pieces and restored == text
    pieces, restored = spell(tmp_path, text, split_digits=True)
    digits = [each for each in pieces if each.strip("\u2581").isdigit()]
    assert [each.strip("\u2581") for each in digits] == [*"1984"] and restored == text
    pieces, restored = spell(tmp_path, text, whole_symbols="<br> <i>")
    assert "<br>" in pieces and restored == text
    assert spell(tmp_path, text, normalization="nfkc")[1] == "1984 fine<br>"
    # One of 1,100 characters.
    assert "<0xC3>" not in spell(tmp_path, "\u00e9")[0]
    pieces, restored = spell(tmp_path, "\u00e9", character_coverage=0.98)
    assert pieces[-2:] == ["<0xC3>", "<0xA9>"] and restored == "\u00e9"


def test_word_pieces_lack_these_options():
    with pytest.raises(UserError, match="split_digits needs tokenizer=sentencepiece"):
        HParams(tokenizer="wordpiece", split_digits=True)
