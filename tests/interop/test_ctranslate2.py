"""Tests of exported models in CTranslate2: probabilities and search results."""

import itertools
import json

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.fast import int8_matmul
from t2t_repro.interop.ctranslate2 import write_ctranslate2
from t2t_repro.models.transformer import Transformer
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.vocabulary import build_vocabulary
from t2t_repro.translation.pair_scores import PairScorer
from t2t_repro.translation.translator import Translator
from tests import tiny
from tests.serving import small

ctranslate2 = pytest.importorskip("ctranslate2")

MODELS = {
    "post": {},
    "pre": {"norm": "pre", "num_layers": 2, "num_decoder_layers": 1},
    "separate": {"share_embeddings": False, "vocab_divisor": 64},
    "learned": {"position": "learned", "max_position": 9, "scale_embeddings": False},
    "paper": {"position": "sinusoid_paper", "target_space_embedding": False},
    "unplaced": {"position": "none"},
}
PAIRS = [(source, target) for source, target in tiny.pairs("test")]
PAIRS += [(text, "eins zwei") for text in small.sentences(6)]


def build(kind, folder):
    suffix = {"sentencepiece": "model", "wordpiece": "subwords"}[kind]
    path = folder / f"vocab.{suffix}"
    lines = itertools.chain.from_iterable(tiny.pairs("train"))
    build_vocabulary(kind, lines, small.VOCAB_SIZE, path)
    return load_tokenizer(path)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return build("sentencepiece", tmp_path_factory.mktemp("sentencepiece"))


@pytest.fixture(scope="module")
def word_pieces(tmp_path_factory):
    return build("wordpiece", tmp_path_factory.mktemp("wordpiece"))


def export(model, tokenizer, folder):
    """Writes a model and opens it with CTranslate2."""
    write_ctranslate2(model, tokenizer, folder)
    return ctranslate2.Translator(str(folder), inter_threads=1, intra_threads=1)


def pieces(tokenizer, names, texts):
    """Returns the pieces of each text, without EOS."""
    rows = tokenizer.encode(tf.constant(texts)).to_list()
    return [[names[number] for number in row[:-1]] for row in rows]


def assert_same_log_probs(model, tokenizer, translator):
    """Compares the log probabilities of the target tokens, including EOS."""
    names = tokenizer.pieces
    results = translator.score_batch(
        *(pieces(tokenizer, names, side) for side in zip(*PAIRS, strict=True))
    )
    scorer = PairScorer(model, tokenizer)
    for expected, score in zip(
        scorer.score_pairs(PAIRS, per_token=True), results, strict=True
    ):
        log_probs = [token.log_prob for token in expected.tokens]
        np.testing.assert_allclose(score.log_probs, log_probs, atol=1e-4)


@pytest.mark.parametrize("settings", MODELS.values(), ids=MODELS.keys())
def test_log_probabilities_are_equal(tokenizer, tmp_path, settings):
    model = small.random_model(tokenizer.vocab_size, **settings)
    assert_same_log_probs(model, tokenizer, export(model, tokenizer, tmp_path))


def test_log_probabilities_are_equal_with_word_pieces(word_pieces, tmp_path):
    model = small.random_model(word_pieces.vocab_size)
    assert_same_log_probs(model, word_pieces, export(model, word_pieces, tmp_path))


@pytest.mark.medium
@pytest.mark.parametrize(("norm", "beam_size"), [("post", 4), ("pre", 1)])
def test_search_results_are_equal_or_better(tokenizer, tmp_path, norm, beam_size):
    """Greedy search gives equal results; beam search here is never worse.

    CTranslate2 finishes a hypothesis only if EOS is among the best `beam_size`
    candidates. This package considers 2 * `beam_size` candidates. At the length limit,
    CTranslate2 may return unfinished hypotheses; this package prefers finished ones.
    """
    model = small.random_model(tokenizer.vocab_size, norm=norm)
    other, names = export(model, tokenizer, tmp_path), tokenizer.pieces
    extra, equal = 8, 0
    translator = Translator(model, tokenizer, DecodingConfig(beam_size, 0.0, extra))
    for source, _ in PAIRS:
        (text,) = pieces(tokenizer, names, [source])
        limit = len(text) + 1 + extra
        ids, scores = translator.translate_ids(
            tokenizer.encode(tf.constant([source])).to_tensor()
        )
        (result,) = other.translate_batch(
            [text],
            beam_size=beam_size,
            length_penalty=0,
            min_decoding_length=0,
            max_decoding_length=limit,
            return_scores=True,
        )
        gap = float(scores[0, 0]) - result.scores[0]
        if abs(gap) < 1e-4:
            ours = [names[n] for n in ids[0, 0].numpy() if n > 1]
            assert result.hypotheses[0] == ours
            equal += 1
        else:
            assert gap > 0 or len(result.hypotheses[0]) >= limit - 1
    assert equal >= (len(PAIRS) if beam_size == 1 else len(PAIRS) / 3)


@pytest.mark.parametrize("kind", ["tokenizer", "word_pieces"])
def test_export_has_the_expected_files_and_configuration(request, kind, tmp_path):
    tokenizer = request.getfixturevalue(kind)
    model = small.random_model(tokenizer.vocab_size)
    write_ctranslate2(model, tokenizer, tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        "model.bin",
        "config.json",
        "shared_vocabulary.json",
        "plain_tokenizer.py",
        tokenizer.file_name,
    }
    config = json.loads((tmp_path / "config.json").read_text())
    vocabulary = json.loads((tmp_path / "shared_vocabulary.json").read_text())
    assert len(vocabulary) == tokenizer.vocab_size == len(set(vocabulary))
    assert config["eos_token"] == vocabulary[1]
    assert config["layer_norm_epsilon"] == 1e-6
    assert config["add_source_eos"] is True


@pytest.mark.parametrize("quantization", ["int8", "int16", "float16"])
def test_quantized_exports_are_smaller_with_similar_scores(
    tokenizer, tmp_path, quantization
):
    model = small.random_model(tokenizer.vocab_size, spread=0.1)
    sizes = []
    for kind in ("float32", quantization):
        (tmp_path / kind).mkdir()
        write_ctranslate2(model, tokenizer, tmp_path / kind, kind)
        sizes.append((tmp_path / kind / "model.bin").stat().st_size)
    assert sizes[1] < sizes[0]
    # CTranslate2 falls back to int8 on processors without int16 support.
    supported = ctranslate2.get_supported_compute_types("cpu")
    in_8_bits = quantization == "int8" or (
        quantization == "int16" and quantization not in supported
    )
    # Without VNNI, the 16-bit sums saturate in CTranslate2 as in TensorFlow.
    if in_8_bits and (
        int8_matmul.unsupported_reason() or int8_matmul.exact_weight_bits() < 8
    ):
        pytest.skip("sums of 8-bit weights saturate on this processor")
    translator = ctranslate2.Translator(str(tmp_path / quantization))
    names = tokenizer.pieces
    results = translator.score_batch(
        *(pieces(tokenizer, names, side) for side in zip(*PAIRS, strict=True))
    )
    expected = PairScorer(model, tokenizer).score_pairs(PAIRS)
    for score, pair in zip(results, expected, strict=True):
        mean = np.mean(score.log_probs)
        assert mean == pytest.approx(pair.normalized, abs=0.2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_relative_position": 4}, "max_relative_position=4: .* supports only 0"),
        ({"d_v": 4}, "d_v=4: CTranslate2 supports only 8; export"),
    ],
)
def test_rejects_a_model_that_ctranslate2_does_not_support(
    tokenizer, tmp_path, settings, message
):
    model = small.random_model(tokenizer.vocab_size, **settings)
    with pytest.raises(UserError, match=message):
        write_ctranslate2(model, tokenizer, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_rejects_an_unsupported_activation(tokenizer, tmp_path):
    model = Transformer.from_hparams("tiny", tokenizer.vocab_size, activation="tanh")
    with pytest.raises(
        UserError, match="activation=tanh: CTranslate2 supports only relu"
    ):
        write_ctranslate2(model, tokenizer, tmp_path)


def test_renames_duplicate_pieces(tmp_path):
    # tensor2tensor's vocabularies may contain a piece twice and use the second row.
    path = tmp_path / "vocab.subwords"
    texts = ["<pad>", "<EOS>", "one_", "one_", *"\\_u;0123456789", *"onetwhrif"]
    path.write_text("".join(f"'{piece}'\n" for piece in texts))
    tokenizer = load_tokenizer(path)
    (tmp_path / "out").mkdir()
    write_ctranslate2(
        small.random_model(tokenizer.vocab_size), tokenizer, tmp_path / "out"
    )
    text = (tmp_path / "out" / "shared_vocabulary.json").read_text()
    vocabulary = json.loads(text)
    assert vocabulary[2:4] == ["<duplicate 2>", "one_"]
    assert len(set(vocabulary)) == len(vocabulary) == tokenizer.vocab_size


def test_missing_ctranslate2_error_contains_the_pip_command(
    monkeypatch, tokenizer, tmp_path
):
    monkeypatch.setitem(__import__("sys").modules, "ctranslate2.specs", None)
    model = small.random_model(tokenizer.vocab_size)
    with pytest.raises(UserError, match=r"pip install 'ctranslate2>=4.8,<5'"):
        write_ctranslate2(model, tokenizer, tmp_path)
