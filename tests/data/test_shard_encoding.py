"""Ids of encoded pairs equal those of the tokenizers in the graph."""

import itertools
import os

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.data import shard_encoding
from t2t_repro.data.shard_encoding import Chunk, encode_chunks
from t2t_repro.system.atomic_file import iterate_pairs
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.plain_tokenizer import SentencePieces
from t2t_repro.tokenizers.vocabulary import PieceOptions, build_vocabulary
from tests import tiny
from tests.tokenizers import test_marian_tokenizer
from tests.tokenizers.test_plain_tokenizer import TEXTS

LINES = [side for pair in tiny.pairs("train") for side in pair]
SPACES = [
    "a",
    "one  two   three ",
    "  one",
    "one\u3000two\u00a0three\u2009four",
    "one\ttwo \t three",
    "a \u0308b e\u0301 \ufb01 \u2460",
    "one\u2581two \u2581 \u2581\u2581three",
    "one\ue000two \ue000\ue001 \ue000\ue002\ue000",
    "a{0}b <br>three<br> <br",
    "12 345 6",
]
OPTIONS = {
    "bpe": PieceOptions(),
    "symbols": PieceOptions(whole_symbols="{0} <br>"),
    "digits": PieceOptions(split_digits=True),
    "nmt_nfkc_cf": PieceOptions(normalization="nmt_nfkc_cf"),
}


@pytest.fixture(scope="module", params=[*OPTIONS, "wordpiece", "marian"])
def tokenizer(request, tmp_path_factory):
    """A vocabulary of each kind."""
    folder, kind = tmp_path_factory.mktemp(request.param), request.param
    if kind == "marian":
        test_marian_tokenizer.two_vocabularies().save(folder)
    elif kind == "wordpiece":
        build_vocabulary(kind, LINES, 90, folder / "vocab.subwords")
    else:
        path = folder / "vocab.model"
        build_vocabulary("sentencepiece", LINES, 300, path, options=OPTIONS[kind])
    return load_tokenizer(folder)


def encode(tokenizer, pairs):
    """Returns the ids of both sides of each pair."""
    chunks = [Chunk(0, pairs[start : start + 50]) for start in range(0, len(pairs), 50)]
    encoded = list(encode_chunks(chunks, tokenizer.make_plain, np.int32))
    tokens = np.concatenate([chunk.tokens for chunk in encoded])
    lengths = np.concatenate([chunk.lengths for chunk in encoded])
    rows = np.split(tokens, np.cumsum(lengths)[:-1])
    return [row.tolist() for row in rows[::2]], [row.tolist() for row in rows[1::2]]


def encode_in_graph(tokenizer, pairs):
    """Returns the ids of both sides of each pair, computed by TensorFlow."""
    sources, targets = map(tf.constant, zip(*pairs, strict=True))
    ids = tokenizer.encode(sources), tokenizer.target.encode(targets)
    return tuple(each.to_list() for each in ids)


def test_ids_of_odd_texts(tokenizer):
    texts = SPACES + TEXTS
    pairs = list(zip(texts, texts[::-1], strict=True)) * 2  # Their words are known.
    assert encode(tokenizer, pairs) == encode_in_graph(tokenizer, pairs)


def test_ids_of_words_that_are_not_kept(tokenizer, monkeypatch):
    monkeypatch.setattr(shard_encoding, "_MOST_WORDS", 3)
    monkeypatch.setattr(shard_encoding, "_LONGEST_WORD", 2)
    pairs = list(itertools.pairwise(SPACES))
    assert encode(tokenizer, pairs) == encode_in_graph(tokenizer, pairs)


def test_a_word_of_a_byte_pair_model_is_encoded_once(tmp_path, monkeypatch):
    build_vocabulary("sentencepiece", LINES, 300, tmp_path / "vocab.model")
    encoded, encode_text = [], SentencePieces.encode

    def record(side, text):
        encoded.append(text)
        return encode_text(side, text)

    monkeypatch.setattr(SentencePieces, "encode", record)
    encode(load_tokenizer(tmp_path), [("one two one", "two  three"), ("three", "one")])
    assert sorted(encoded) == [" ", "one", "three", "two"]


@pytest.mark.parametrize("kind", ["sentencepiece", "wordpiece"])
def test_ids_of_news(kind, shared_dir, tmp_path):
    """Sentences with names, numbers, quotes and the other punctuation of the web."""
    path = shared_dir / "corpora" / "wmt_newstest" / "en-de" / "newstest2014-deen"
    pairs = list(iterate_pairs(f"{path}.en", f"{path}.de"))
    suffix = {"sentencepiece": ".model", "wordpiece": ".subwords"}[kind]
    vocabulary = tmp_path / f"vocab{suffix}"
    lines = itertools.chain.from_iterable(pairs[:200])
    build_vocabulary(kind, lines, 800, vocabulary)
    tokenizer = load_tokenizer(vocabulary)
    assert encode(tokenizer, pairs) == encode_in_graph(tokenizer, pairs)


class ProcessNumber:
    """Tokenizer whose only id is the number of the process that encodes."""

    def __init__(self):
        self.source = self.target = self

    def split(self, text):
        return text.split()

    def encode(self, word):
        return [os.getpid()]


def test_other_processes_encode_all_but_the_first_chunks():
    chunks = [Chunk(0, [(str(number), "")]) for number in range(19)]
    encoded = encode_chunks(chunks, ProcessNumber, np.int32, workers=2)
    numbers = [chunk.tokens[0] for chunk in encoded]
    assert set(numbers[:16]) == {os.getpid()}
    assert len(numbers) == 19 and os.getpid() not in numbers[16:]
