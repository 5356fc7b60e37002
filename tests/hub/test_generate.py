"""`generate` translates like the package's translator, for every architecture."""

import numpy as np
import pytest

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.hub import TransformerBackbone, TransformerSeq2SeqLM
from t2t_repro.system.errors import UserError
from t2t_repro.translation.translator import Translator
from tests import tiny

EXTRA = 5
LINES = [
    *(source for source, _ in tiny.pairs("test")),
    " \t",
    "one\u2028two",
    "one " * 9,
]
ARCHITECTURES = {
    "paper": {},
    "relative": {
        "max_relative_position": 2,
        "position": "learned",
        "max_position": 7,
        "norm": "pre",
        "activation": "gelu",
        "scale_embeddings": False,
        "softmax_bias": True,
    },
    "local": {
        "self_attention_radius": 1,
        "share_embeddings": False,
        "position": "sinusoid_from_one",
        "start_symbol": 4,
        "source_end": False,
        "num_decoder_layers": 2,
    },
    "both": {
        "self_attention_radius": 2,
        "max_relative_position": 1,
        "share_embeddings": False,
        "tie_target": True,
        "position": "none",
        "attention_bias": True,
        "decoder_d_ff": 24,
        "vocab_divisor": 8,
    },
}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return tiny.tokenizer(tmp_path_factory.mktemp("vocabulary"))


@pytest.fixture(scope="module")
def vocabulary(tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    tokenizer.save(folder)
    return folder / tokenizer.file_name


@pytest.fixture(scope="module")
def make_task(vocabulary):
    """Returns a function that creates a random model, and its task."""

    def make(**settings):
        model = tiny.random_model(**settings)
        task = TransformerSeq2SeqLM.from_model(model, vocabulary, extra_length=EXTRA)
        return model, task

    return make


def translate(model, tokenizer, prefixes=None, **settings):
    search = DecodingConfig(**({"extra_length": EXTRA} | settings))
    translator = Translator(model, tokenizer, search)
    found = translator.translate_window(LINES, prefixes=prefixes)
    return [each.text for each in found]


QUICK = "both"
NAMES = [
    pytest.param(name, marks=() if name == QUICK else pytest.mark.medium)
    for name in ARCHITECTURES
]


@pytest.mark.parametrize("name", NAMES)
def test_every_architecture_translates_like_translate(name, make_task, tokenizer):
    model, task = make_task(**ARCHITECTURES[name])
    task.compile(run_eagerly=True)
    expected = translate(model, tokenizer)
    assert task.generate(LINES) == expected
    assert len(set(expected)) > 5
    x, y, weights = task.preprocessor(
        {"encoder_text": LINES, "decoder_text": LINES[::-1]},
        encoder_sequence_length=12,
        decoder_sequence_length=9,
    )
    np.testing.assert_array_equal(weights, y != 0)
    logits = model({"inputs": x["encoder_token_ids"], "targets": y})
    np.testing.assert_array_equal(task(x)[weights == 1], logits[weights == 1])


@pytest.mark.medium
@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_graph_translates_in_batches_of_any_size(jit_compile, make_task, tokenizer):
    model, task = make_task(max_relative_position=2, num_layers=2)
    task.compile(jit_compile=jit_compile)
    expected = translate(model, tokenizer)
    assert task.generate(LINES) == expected
    assert [task.generate(line) for line in LINES[:2]] == expected[:2]


@pytest.mark.parametrize("name", NAMES)
def test_a_backbone_can_be_copied_by_its_config(name, make_task):
    _, task = make_task(**ARCHITECTURES[name])
    config = task.backbone.get_config()
    copy = TransformerBackbone.from_config(config)
    assert copy.get_config() == config
    paths = [weight.path for weight in task.backbone.weights]
    assert [weight.path for weight in copy.weights] == paths


@pytest.mark.medium
@pytest.mark.parametrize(("extra_length", "widths"), [(20, [48]), (40, [48, 73])])
def test_the_whole_width_is_used_if_a_narrow_one_is_too_short(
    extra_length, widths, vocabulary, tokenizer, monkeypatch
):
    model, settings = tiny.random_model(), {"extra_length": extra_length}
    task = TransformerSeq2SeqLM.from_model(model, vocabulary, **settings)
    tried, step = [], task.generate_step

    def generate_step(inputs, *args):
        tried.append(inputs["decoder_token_ids"].shape[1])
        return step(inputs, *args)

    monkeypatch.setattr(task, "generate_step", generate_step)
    task.compile(run_eagerly=True)
    # The longest source has 17 tokens, which are padded to 32.
    assert task.generate(LINES) == translate(model, tokenizer, **settings)
    assert tried == widths


@pytest.mark.medium
def test_prefixes_lengths_and_single_texts(make_task, tokenizer):
    model, task = make_task()
    task.compile(run_eagerly=True)
    prefixes = ["eins", "", "zwei drei ", "", "vier", "f", "eins", "", "neun"]
    inputs = {"encoder_text": LINES, "decoder_text": prefixes}
    before = inputs | {}
    assert task.generate(inputs) == translate(model, tokenizer, prefixes)
    # keras-hub's `generate` changes its argument.
    assert inputs == before
    shorter = translate(model, tokenizer, length_factor=0.0, extra_length=4)
    assert task.generate(LINES, max_length=5) == shorter
    assert task.generate(LINES[0], max_length=5) == shorter[0]
    assert task.generate([]) == []
    with pytest.raises(
        UserError, match=r"^the prefix 'eins eins.* at most \d+; shorten"
    ):
        task.generate({"encoder_text": ["one"], "decoder_text": ["eins " * 20]})


def test_keras_hubs_samplers_stop_at_the_limits_of_the_sentences(make_task, tokenizer):
    model, task = make_task()
    task.compile(sampler="greedy", run_eagerly=True)
    assert task.generate(LINES) == translate(model, tokenizer, beam_size=1)
