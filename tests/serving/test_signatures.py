"""Each signature says what translating and scoring in Python says."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.models.attention_maps import attention_maps
from t2t_repro.serving import signatures
from t2t_repro.serving.attention_signature import MAX_LENGTH, MAX_PAIRS
from t2t_repro.serving.signatures import ServingModule
from t2t_repro.translation.pair_scores import PairScorer
from t2t_repro.translation.translator import Translator
from tests.serving import small

pytestmark = pytest.mark.medium

TEXTS = [*small.sentences(6), "", " \u3000", "ten"]


@pytest.fixture(scope="module")
def translator(model, tokenizer):
    search = DecodingConfig(small.BEAM_SIZE, extra_length=small.EXTRA_LENGTH, nbest=3)
    return Translator(model, tokenizer, search, small.MAX_INPUT_LENGTH)


@pytest.fixture(scope="module")
def expected(translator):
    return translator.translate_window(TEXTS)


def ask(module, signature, *texts):
    found = module.functions[signature](*map(tf.constant, texts))
    return {name: value.numpy() for name, value in found.items()}


def decoded(texts):
    return [text.decode() for text in texts]


def test_the_default_translates_as_a_translator_does(module, expected):
    found = ask(module, "serving_default", TEXTS)
    assert found.keys() == {"translations", "scores"}
    assert decoded(found["translations"]) == [each.text for each in expected]
    scores = [each.score for each in expected]
    np.testing.assert_allclose(found["scores"], scores, atol=1e-4)


def test_lists_hold_what_the_beam_holds(module, expected):
    found = ask(module, "nbest", TEXTS)
    assert found["scores"].shape == (len(TEXTS), small.BEAM_SIZE)
    for texts, scores, each in zip(
        found["translations"], found["scores"], expected, strict=True
    ):
        wanted = [(each.text, each.score), *((o.text, o.score) for o in each.others)]
        missing = small.BEAM_SIZE - len(wanted)
        wanted += [("", -1e7)] * missing
        assert decoded(texts) == [text for text, _ in wanted]
        np.testing.assert_allclose(scores, [score for _, score in wanted], atol=1e-4)


def test_scores_of_pairs_are_teacher_forced(module, model, tokenizer):
    pairs = [(text, "eins zwei drei" * (n % 2)) for n, text in enumerate(TEXTS)]
    found = ask(module, "score", *map(list, zip(*pairs, strict=True)))
    assert found.keys() == {"log_probability"}
    scorer = PairScorer(model, tokenizer, small.MAX_INPUT_LENGTH)
    wanted = [score.log_prob for score in scorer.score_pairs(pairs)]
    np.testing.assert_allclose(found["log_probability"], wanted, atol=1e-4)


@pytest.mark.medium
def test_terms_stand_in_the_translations(model, tokenizer):
    search = DecodingConfig(small.BEAM_SIZE, extra_length=20)
    module = ServingModule([model], tokenizer, search, 24, with_terms=True)
    texts = ["one two", "three", "", "four five six"]
    terms = [["acht", ""], ["zwei", "neun"], ["acht", ""], ["", ""]]
    found = ask(module, "terms", texts, terms)
    plain = ask(module, "serving_default", texts)
    lines = [text.decode().split() for text in found["translations"]]
    assert "acht" in lines[0]
    assert {"zwei", "neun"} <= {*lines[1]}
    assert lines[2] == []
    assert found["scores"][2] == 0
    # Nothing was asked of the last; the best may be another, never a worse one.
    assert found["scores"][3] >= plain["scores"][3] - 1e-4
    with pytest.raises(tf.errors.InvalidArgumentError, match="at most 64 terms"):
        ask(module, "terms", ["one"], [["zwei"] * 65])
    assert "terms" not in ServingModule([model], tokenizer, search, 24).functions


@pytest.mark.medium
def test_a_batch_is_computed_in_parts_without_a_trace(
    model, tokenizer, module, monkeypatch
):
    monkeypatch.setattr(signatures, "_SEARCH_POSITIONS", 40)
    monkeypatch.setattr(signatures, "_SCORE_POSITIONS", 30)
    search = DecodingConfig(small.BEAM_SIZE, extra_length=small.EXTRA_LENGTH)
    parts = ServingModule([model], tokenizer, search, small.MAX_INPUT_LENGTH)
    for signature in ("serving_default", "nbest", "score"):
        inputs = [TEXTS] * len(parts.functions[signature].input_signature)
        some, whole = ask(parts, signature, *inputs), ask(module, signature, *inputs)
        for name, value in whole.items():
            if value.dtype == object:
                assert some[name].tolist() == value.tolist()
            else:
                np.testing.assert_allclose(some[name], value, atol=1e-4)


@pytest.mark.parametrize("signature", ["serving_default", "nbest", "score"])
def test_no_text_has_no_answer(module, signature):
    inputs = len(module.functions[signature].input_signature)
    found = module.functions[signature](*[tf.constant([], tf.string)] * inputs)
    assert all(value.shape[0] == 0 for value in found.values())


def test_long_texts_are_cut(module, tokenizer):
    text = " ".join(small.sentences(20))
    longest = small.MAX_INPUT_LENGTH
    ids = tokenizer.encode(tf.constant([text]))[0, : longest - 1]
    beginning = tokenizer.decode(ids[None])[0].numpy().decode()
    assert len(tokenizer.encode(tf.constant([beginning]))[0]) <= longest
    long, cut = ask(module, "serving_default", [text, beginning])["translations"]
    assert long == cut
    # Of a translation as many more are read as the model could have given.
    most = longest + small.EXTRA_LENGTH
    ids = tokenizer.encode(tf.constant([text]))[0, : most - 1]
    given = tokenizer.decode(ids[None])[0].numpy().decode()
    scores = ask(module, "score", ["one", "one"], [text, given])
    long, cut = scores["log_probability"]
    assert long == pytest.approx(cut, abs=1e-3)


def test_pairs_must_be_pairs(module):
    for signature in ("score", "attention"):
        with pytest.raises(tf.errors.InvalidArgumentError, match="same number"):
            ask(module, signature, ["one", "two"], ["eins"])


def test_attention_is_the_models(module, model, tokenizer):
    texts, translations = ["one two", "three"], ["eins", "drei vier fünf"]
    found = ask(module, "attention", texts, translations)
    inputs, targets = (
        tokenizer.encode(tf.constant(side)).to_tensor()
        for side in (texts, translations)
    )
    maps = attention_maps(model, inputs, targets)
    for output, name in (
        ("encoder_self_attention", "encoder/layer_0/self_attention"),
        ("decoder_self_attention", "decoder/layer_0/self_attention"),
        ("cross_attention", "decoder/layer_0/cross_attention"),
    ):
        np.testing.assert_allclose(found[output][:, 0], maps[name], atol=1e-6)
    assert decoded(found["translations"]) == translations
    for side, ids in (("source", inputs), ("target", targets)):
        lengths = np.count_nonzero(ids, axis=1)
        np.testing.assert_array_equal(found[f"{side}_lengths"], lengths)
        for row, length in zip(found[f"{side}_tokens"], lengths, strict=True):
            tokens = decoded(row)
            assert tokens[length - 1] == "</s>"
            assert tokens[length:] == [""] * (len(tokens) - length)
            assert "".join(tokens[: length - 1]).startswith("▁")
    # By hand: the first word of the first source, spelled by its tokens.
    tokens = "".join(decoded(found["source_tokens"][0])[:-1])
    assert tokens.replace("</s>", "") == "▁one▁two"


def test_a_missing_translation_is_the_models_own(module, expected):
    texts = [TEXTS[0], TEXTS[1], ""]
    found = ask(module, "attention", texts, ["", "eins", ""])
    assert decoded(found["translations"]) == [expected[0].text, "eins", ""]
    alone = ask(module, "attention", texts[:1], [" "])
    length = int(alone["target_lengths"][0])
    assert found["target_lengths"][0] == length
    np.testing.assert_allclose(
        found["cross_attention"][0, :, :, :length, : alone["source_lengths"][0]],
        alone["cross_attention"][0],
        atol=1e-5,
    )
    longest = max(found["target_lengths"])
    assert found["target_tokens"].shape[1] == longest


def test_attention_maps_are_bounded(module):
    text = "one two three " * 100
    found = ask(module, "attention", [text], [text])
    shape = (1, 1, 2, MAX_LENGTH, small.MAX_INPUT_LENGTH)
    assert found["cross_attention"].shape == shape
    texts = ["one"] * (MAX_PAIRS + 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="at most 64 texts"):
        ask(module, "attention", texts, texts)


@pytest.mark.medium
def test_several_models_translate_and_score_as_one(model, tokenizer):
    other = small.random_model(small.VOCAB_SIZE, spread=0.2)
    search = DecodingConfig(small.BEAM_SIZE, extra_length=small.EXTRA_LENGTH)
    module = ServingModule([model, other], tokenizer, search)
    assert module.functions.keys() == {"serving_default", "nbest", "score"}
    wanted = Translator([model, other], tokenizer, search).translate_window(TEXTS)
    found = ask(module, "serving_default", TEXTS)
    assert decoded(found["translations"]) == [each.text for each in wanted]
    inputs, targets = (
        tokenizer.encode(tf.constant([text])).to_tensor() for text in ("one", "eins")
    )
    pair = {"inputs": inputs, "targets": targets}
    mean = np.mean([tf.nn.softmax(each(pair)) for each in (model, other)], axis=0)
    log_probs = np.log(np.take_along_axis(mean[0], targets.numpy().T, axis=1))
    found = ask(module, "score", ["one"], ["eins"])["log_probability"]
    np.testing.assert_allclose(found, [log_probs.sum()], atol=1e-4)
