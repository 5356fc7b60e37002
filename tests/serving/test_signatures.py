"""Each signature gives the results of translating and scoring in Python."""

import re
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.models.attention_maps import attention_maps
from t2t_repro.serving import (
    attention_signature,
    id_signatures,
    server_files,
    text_signatures,
)
from t2t_repro.serving.attention_signature import (
    MAX_LENGTH,
    MAX_PAIRS,
    AttentionSignature,
)
from t2t_repro.serving.server.batching import BatchingParameters, merge
from t2t_repro.serving.signatures import ServingModule
from t2t_repro.texts.division import Division
from t2t_repro.texts.pipeline import Pipeline
from t2t_repro.texts.placeholders import Placeholders
from t2t_repro.texts.sentences import SentenceSplitter
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


def call(module, signature, *texts):
    outputs = module.functions[signature](*map(tf.constant, texts))
    return {name: value.numpy() for name, value in outputs.items()}


def decoded(texts):
    return [text.decode() for text in texts]


def test_serving_default_translates_like_a_translator(module, expected):
    outputs = call(module, "serving_default", TEXTS)
    assert outputs.keys() == {"translations", "scores", "notes"}
    assert [bool(note) for note in outputs["notes"]] == [each.cut for each in expected]
    assert decoded(outputs["translations"]) == [each.text for each in expected]
    scores = [each.score for each in expected]
    np.testing.assert_allclose(outputs["scores"], scores, atol=1e-4)


def test_the_lines_of_a_text_are_translated_separately(module, translator):
    texts = ["One two. Three!\r\n\n four ", " \n", "five"]
    one, four, five = translator.translate_window(["One two. Three!", "four ", "five"])
    outputs = call(module, "serving_default", texts)
    whole = f"{one.text}\r\n\n {four.text}"
    assert decoded(outputs["translations"]) == [whole, " \n", five.text]
    scores = [(one.score + four.score) / 2, 0, five.score]
    np.testing.assert_allclose(outputs["scores"], scores, atol=1e-4)


def test_sentences_are_translated_separately_as_in_python(
    module, tokenizer, translator
):
    long = " ".join(small.sentences(20))
    texts = ["One two. Three!\r\n\n four ", " \n", *TEXTS, "Five.\u2028Six", long]
    splitter = SentenceSplitter(tokenizer, small.MAX_INPUT_LENGTH, "en")
    rule = Division(splitter, by_sentence=True)
    pipeline = Pipeline(translator, Placeholders([]), None, division=rule)
    whole = pipeline.translate_window(texts)
    outputs = call(module, "split_sentences", texts)
    assert decoded(outputs["translations"]) == [each.text for each in whole]
    assert re.findall(r"\s*\n\s*", whole[0].text) == ["\r\n\n "]
    scores = [each.score for each in whole]
    np.testing.assert_allclose(outputs["scores"], scores, atol=1e-4)
    # Texts do not depend on the others.
    alone = call(module, "split_sentences", texts[:1])
    assert alone["translations"][0] == outputs["translations"][0]


def test_nbest_returns_all_hypotheses_of_the_beam(module, expected):
    outputs = call(module, "nbest", TEXTS)
    assert outputs["scores"].shape == (len(TEXTS), small.BEAM_SIZE)
    for texts, scores, each in zip(
        outputs["translations"], outputs["scores"], expected, strict=True
    ):
        pairs = [(hypothesis.text, hypothesis.score) for hypothesis in each.hypotheses]
        missing = small.BEAM_SIZE - len(pairs)
        pairs += [("", -1e7)] * missing
        assert decoded(texts) == [text for text, _ in pairs]
        np.testing.assert_allclose(scores, [score for _, score in pairs], atol=1e-4)


def test_score_equals_the_pair_scorer(module, model, tokenizer):
    pairs = [(text, "eins zwei drei" * (n % 2)) for n, text in enumerate(TEXTS)]
    outputs = call(module, "score", *map(list, zip(*pairs, strict=True)))
    assert outputs.keys() == {"log_probability", "notes"}
    scorer = PairScorer(model, tokenizer, small.MAX_INPUT_LENGTH)
    expected = [score.log_prob for score in scorer.score_pairs(pairs)]
    np.testing.assert_allclose(outputs["log_probability"], expected, atol=1e-4)


@pytest.mark.medium
def test_translations_contain_their_terms(model, tokenizer):
    search = DecodingConfig(small.BEAM_SIZE, extra_length=20)
    module = ServingModule([model], tokenizer, search, 24, with_terms=True)
    texts = ["one two", "three", "", "four five six"]
    numbers = [str(n) for n in range(10, 75)]
    terms = [["acht", ""], ["zwei", "neun"], ["acht", ""], ["", ""]]
    outputs = call(module, "terms", texts, terms)
    # The server merges requests with different numbers of terms.
    requests = [
        {"text": np.array(["one two"]), "terms": np.array([["acht"]])},
        {"text": np.array(["three"]), "terms": np.array([["zwei", "neun"]])},
        {"text": np.array(texts[:2]), "terms": np.array([["", "vier"], ["", "elf"]])},
        {"text": np.array(texts[:2]), "terms": np.array([["elf\nvier"], [""]])},
        # Twice the 40 terms would be more than the maximum.
        {"text": np.array(["five"]), "terms": np.array([["\n".join(numbers[:40])]])},
    ]
    templates = Path(server_files.__file__).with_name("templates")
    pad = BatchingParameters.read(templates / server_files.BATCHING, max_batch_size=64)
    merged = merge(requests, 7, pad.pad_variable_length_inputs)
    together = call(module, "terms", *merged.values())
    for name in ("translations", "notes"):
        rest = together[name].tolist()
        for each in requests:
            alone = call(module, "terms", *each.values())[name].tolist()
            assert [rest.pop(0) for _ in alone] == alone
    strings = [["acht"], ["zwei\nneun"], ["\nacht"], [""]]
    joined = call(module, "terms", texts, strings)["translations"]
    assert joined.tolist() == outputs["translations"].tolist()
    none = call(module, "terms", texts[:1], np.empty((1, 0), object))
    without = call(module, "terms", texts[:1], [[""]])
    assert none["translations"] == without["translations"]
    plain = call(module, "serving_default", texts)
    lines = [text.decode().split() for text in outputs["translations"]]
    assert "acht" in lines[0]
    assert {"zwei", "neun"} <= {*lines[1]}
    assert lines[2] == []
    assert outputs["scores"][2] == 0
    # For a text without terms, the constrained search may find a better translation.
    assert outputs["scores"][3] >= plain["scores"][3] - 1e-4
    # Terms that are ignored do not make the requests of other clients fail.
    terms = [["\n".join(numbers)], ["acht" * 99 + "\nelf"], [" \r\n" * 65], ["elf"]]
    outputs = call(module, "terms", ["one", "two", "three", ""], terms)
    lines = decoded(outputs["translations"])
    assert "elf" in lines[1].split()
    lacking = "terms that the translation lacks: "
    first, *others = decoded(outputs["notes"])
    assert others == [lacking + "acht" * 20, "", lacking + "elf"]
    first, names = first.split(f"; {lacking}")
    assert first == "terms that were not read: 1"
    assert not {*names.split(", ")} & {*lines[0].split()}
    assert {*names.split(", "), *lines[0].split()} >= {*numbers[:64]}
    assert "terms" not in ServingModule([model], tokenizer, search, 24).functions


@pytest.mark.medium
def test_micro_batches_do_not_change_the_results(model, tokenizer, module, monkeypatch):
    monkeypatch.setattr(text_signatures, "SEARCH_POSITIONS", 40)
    monkeypatch.setattr(id_signatures, "SCORE_POSITIONS", 30)
    search = DecodingConfig(small.BEAM_SIZE, extra_length=small.EXTRA_LENGTH)
    parts = ServingModule([model], tokenizer, search, small.MAX_INPUT_LENGTH)
    # The other signatures search with the same function as `nbest`.
    for signature in ("nbest", "score"):
        inputs = [TEXTS] * len(parts.functions[signature].input_signature)
        partial, whole = (
            call(parts, signature, *inputs),
            call(module, signature, *inputs),
        )
        for name, value in whole.items():
            if value.dtype == object:
                assert partial[name].tolist() == value.tolist()
            else:
                np.testing.assert_allclose(partial[name], value, atol=1e-4)


@pytest.mark.parametrize(
    "signature", ["serving_default", "split_sentences", "nbest", "score"]
)
def test_an_empty_batch_has_empty_outputs(module, signature):
    inputs = len(module.functions[signature].input_signature)
    outputs = module.functions[signature](*[tf.constant([], tf.string)] * inputs)
    assert all(value.shape[0] == 0 for value in outputs.values())


def test_long_texts_are_truncated(module, tokenizer):
    text = " ".join(small.sentences(20))
    longest = small.MAX_INPUT_LENGTH
    ids = tokenizer.encode(tf.constant([text]))[0, : longest - 1]
    beginning = tokenizer.decode(ids[None])[0].numpy().decode()
    assert len(tokenizer.encode(tf.constant([beginning]))[0]) <= longest
    outputs = call(module, "serving_default", [text, beginning])
    long, cut = outputs["translations"]
    assert long == cut
    size = len(tokenizer.encode(tf.constant([text]))[0])
    note = "subwords{} that were not read: {}"
    assert decoded(outputs["notes"]) == [note.format("", size - longest), ""]
    # Translations are truncated to the maximum output length.
    most = longest + small.EXTRA_LENGTH
    ids = tokenizer.encode(tf.constant([text]))[0, : most - 1]
    beginning = tokenizer.decode(ids[None])[0].numpy().decode()
    scores = call(module, "score", ["one", "one"], [text, beginning])
    long, cut = scores["log_probability"]
    assert long == pytest.approx(cut, abs=1e-3)
    unread = note.format(" of the translation", size - most)
    assert decoded(scores["notes"]) == [unread, ""]


def test_rejects_different_numbers_of_texts_and_translations(module):
    for signature in ("score", "attention"):
        with pytest.raises(tf.errors.InvalidArgumentError, match="same number"):
            call(module, signature, ["one", "two"], ["eins"])


def test_attention_equals_that_of_the_model(module, model, tokenizer):
    texts, translations = ["one two", "three"], ["eins", "drei vier fünf"]
    outputs = call(module, "attention", texts, translations)
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
        np.testing.assert_allclose(outputs[output][:, 0], maps[name], atol=1e-6)
    assert decoded(outputs["translations"]) == translations
    for side, ids in (("source", inputs), ("target", targets)):
        lengths = np.count_nonzero(ids, axis=1)
        np.testing.assert_array_equal(outputs[f"{side}_lengths"], lengths)
        for row, length in zip(outputs[f"{side}_tokens"], lengths, strict=True):
            tokens = decoded(row)
            assert tokens[length - 1] == "</s>"
            assert tokens[length:] == [""] * (len(tokens) - length)
            assert "".join(tokens[: length - 1]).startswith("▁")
    # The tokens of the first source spell its words.
    tokens = "".join(decoded(outputs["source_tokens"][0])[:-1])
    assert tokens.replace("</s>", "") == "▁one▁two"


def test_attention_names_the_tokens_of_both_vocabularies(marian_arguments):
    (model,), tokenizer, search, longest = marian_arguments
    translator = Translator(model, tokenizer, search, longest)
    signature = AttentionSignature(model, translator)
    outputs = signature(tf.constant(["one two"]), tf.constant(["eins zwei"]))
    for side, text in (("source", "one two"), ("target", "eins zwei")):
        *tokens, end = decoded(outputs[f"{side}_tokens"][0].numpy())
        assert ("".join(tokens), end) == ("▁" + text.replace(" ", "▁"), "</s>")


def test_a_missing_translation_is_replaced_by_the_models(module, expected):
    texts = [TEXTS[0], TEXTS[1], ""]
    outputs = call(module, "attention", texts, ["", "eins", ""])
    assert decoded(outputs["translations"]) == [expected[0].text, "eins", ""]
    single = call(module, "attention", texts[:1], [" "])
    length = int(single["target_lengths"][0])
    assert outputs["target_lengths"][0] == length
    np.testing.assert_allclose(
        outputs["cross_attention"][0, :, :, :length, : single["source_lengths"][0]],
        single["cross_attention"][0],
        atol=1e-5,
    )
    longest = max(outputs["target_lengths"])
    assert outputs["target_tokens"].shape[1] == longest


def test_attention_cuts_the_models_own_translation_with_a_note(
    translator, model, monkeypatch
):
    text = "ten"
    (whole,) = translator.translate_ids(translator.encode(tf.constant([text])))[0][:, 0]
    length = np.count_nonzero(whole)
    assert length > 4
    signature = AttentionSignature(model, translator)
    monkeypatch.setattr(attention_signature, "MAX_LENGTH", 4)
    outputs = signature(tf.constant([text, text]), tf.constant(["", "z"]))
    assert int(outputs["target_lengths"][0]) == 4
    unread = f"subwords of the translation that were not read: {length - 4}"
    assert decoded(outputs["notes"].numpy()) == [unread, ""]


def test_attention_maps_are_bounded(module):
    text = "one two three " * 100
    outputs = call(module, "attention", [text], [text])
    shape = (1, 1, 2, MAX_LENGTH, small.MAX_INPUT_LENGTH)
    assert outputs["cross_attention"].shape == shape
    assert b" of the translation that were not read: " in outputs["notes"][0]
    texts = ["one"] * (MAX_PAIRS + 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="at most 64 texts"):
        call(module, "attention", texts, texts)


@pytest.mark.medium
def test_several_models_translate_and_score_as_an_ensemble(model, tokenizer, expected):
    other = small.random_model(small.VOCAB_SIZE, spread=0.2)
    search = DecodingConfig(small.BEAM_SIZE, extra_length=small.EXTRA_LENGTH)
    module = ServingModule([model, other], tokenizer, search)
    assert module.functions.keys() == {
        "serving_default",
        "split_sentences",
        "nbest",
        "score",
    }
    ensemble = Translator([model, other], tokenizer, search).translate_window(TEXTS)
    assert any(
        one.text != two.text and not two.cut
        for one, two in zip(ensemble, expected, strict=True)
    )
    outputs = call(module, "serving_default", TEXTS)
    assert decoded(outputs["translations"]) == [each.text for each in ensemble]
    inputs, targets = (
        tokenizer.encode(tf.constant([text])).to_tensor() for text in ("one", "eins")
    )
    pair = {"inputs": inputs, "targets": targets}
    mean = np.mean([tf.nn.softmax(each(pair)) for each in (model, other)], axis=0)
    log_probs = np.log(np.take_along_axis(mean[0], targets.numpy().T, axis=1))
    outputs = call(module, "score", ["one"], ["eins"])["log_probability"]
    np.testing.assert_allclose(outputs, [log_probs.sum()], atol=1e-4)
