"""Tests of word alignments from attention weights."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.models.attention_maps import attention_maps
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.system.errors import UserError
from t2t_repro.translation.alignments import Aligner, align_words
from tests import tiny

# Source `un` `believ` `able` | `news` EOS; target `kaum` | `zu` | `glaub` `lich` EOS.
SOURCE = [(0,), (0,), (0,), (1,)]
TARGET = [(0,), (1,), (2,), (2,)]
WEIGHTS = np.array(
    [
        [0.1, 0.5, 0.1, 0.2, 0.1],
        # The highest weight is on EOS, which is ignored, and the second on `news`.
        [0.0, 0.1, 0.1, 0.2, 0.6],
        [0.2, 0.2, 0.3, 0.2, 0.1],
        [0.0, 0.1, 0.2, 0.7, 0.0],
        # The row of EOS is ignored.
        [0.9, 0.0, 0.0, 0.1, 0.0],
    ]
)


def test_tokens_align_with_the_highest_weight_and_words_with_their_tokens():
    pairs = align_words(WEIGHTS, SOURCE, TARGET)
    assert pairs == {(0, 0), (1, 1), (0, 2), (1, 2)}


def test_ignores_padding():
    padded = np.pad(WEIGHTS, ((0, 2), (0, 3)), constant_values=9)
    assert align_words(padded, SOURCE, TARGET) == align_words(WEIGHTS, SOURCE, TARGET)


def test_tokens_may_belong_to_two_words_or_none():
    weights = np.array([[0.3, 0.1, 0.6, 0.0], [0.0, 0.6, 0.0, 0.4], [1, 0, 0, 0]])
    # The third source token and the last target token are spaces at a line's end.
    pairs = align_words(weights, [(0, 1), (1,), ()], [(0,), (1, 2), ()])
    assert pairs == {(0, 0), (1, 0), (1, 1), (1, 2)}


def test_side_without_words_has_no_alignment():
    assert align_words(np.ones((3, 1)), [], [(0,), (1,)]) == set()
    assert align_words(np.ones((1, 3)), [(0,), (1,)], []) == set()


@pytest.fixture(scope="module")
def model():
    return tiny.random_model(num_layers=3)


@pytest.mark.medium
def test_aligner_uses_the_attention_of_its_layers(model, tokenizer):
    # Tokens do not cross words, so each word can be encoded separately.
    source, target = "one two three four", "eins zwei drei"
    source_words, target_words = (
        np.repeat(
            range(len(text.split())),
            tokenizer.encode(tf.constant(text.split())).row_lengths() - 1,
        )
        for text in (source, target)
    )
    ids = [tokenizer.encode(tf.constant([t])).to_tensor() for t in (source, target)]
    maps = attention_maps(model, *ids)
    layers = [
        maps[f"decoder/layer_{layer}/cross_attention"].numpy()[0].mean(axis=0)
        for layer in range(3)
    ]
    expected = []
    # The default is the mean of the last two layers.
    for weights in [*layers, (layers[1] + layers[2]) / 2]:
        best = weights[: len(target_words), : len(source_words)].argmax(axis=1)
        expected.append(set(zip(source_words[best], target_words, strict=True)))
    chosen = (0, 1, 2, None)
    aligners = [Aligner(model, tokenizer, layer) for layer in chosen]
    # Tracing each would take seconds.
    tf.config.run_functions_eagerly(True)
    try:
        found = [aligner.pairs([source], [target]) for aligner in aligners]
    finally:
        tf.config.run_functions_eagerly(False)
    assert found == [[pairs] for pairs in expected]
    assert any(pairs != expected[0] for pairs in expected)


def test_rejects_missing_layers_and_lines(model, tokenizer):
    with pytest.raises(UserError, match="decoder layer 3 does not exist"):
        Aligner(model, tokenizer, layer=3)
    with pytest.raises(UserError, match="2 sources but 1 targets"):
        Aligner(model, tokenizer).pairs(["one", "two"], ["eins"])


@pytest.mark.medium
def test_trained_model_aligns_every_target_word(trained):
    directory = ModelDir(trained.model_dir)
    model = directory.model(directory.checkpoint())
    sources, targets = map(list, zip(*tiny.pairs("train"), strict=True))
    sources[5:5], targets[5:5] = ["", "one €", " "], ["eins", "x\u2581y  日本", ""]
    aligner = Aligner(model, directory.tokenizer())
    assert aligner.layers == [0]  # The model has only one layer.
    aligned = aligner.pairs(sources, targets)
    assert len(aligned) == len(sources)
    for source, target, pairs in zip(sources, targets, aligned, strict=True):
        assert all(0 <= i < len(source.split()) for i, _ in pairs)
        expected = set(range(len(target.split()))) if source.strip() else set()
        assert {j for _, j in pairs} == expected
    assert aligner.pairs(sources[::-1], targets[::-1]) == aligned[::-1]
    assert aligner.pairs([], []) == aligner.align_hypotheses([], []) == []
