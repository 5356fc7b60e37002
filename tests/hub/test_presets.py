"""Presets are loaded in other processes, from other folders and on other backends."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import keras
import keras_hub
import numpy as np
import pytest

from t2t_repro.hub import TransformerSeq2SeqLM
from t2t_repro.hub.other_samplers import MarianSampler
from tests import tiny

ROOT = Path(__file__).resolve().parents[2]
LINES = [source for source, _ in tiny.pairs("test")]
# Loads a preset, translates, trains on texts, and prints what another process compares.
PROGRAM = """
import json, sys
import keras, keras_hub
import t2t_repro.hub
loaded = {name for name in sys.modules if name.startswith("t2t_repro.")}
lines = json.load(sys.stdin)
task = keras_hub.models.Seq2SeqLM.from_preset(sys.argv[1])
translations = task.generate(lines)
task.compile(keras.optimizers.Adam(0.01))
pairs = {"encoder_text": lines, "decoder_text": lines}
history = task.fit(pairs, batch_size=3, epochs=3, shuffle=False, verbose=0).history
print(json.dumps([translations, history["loss"], sorted(loaded)]))
"""


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocabulary")
    vocabulary = folder / tiny.tokenizer(folder).file_name
    sampler = MarianSampler(3, 0.5, (2,), 0.1)
    model = tiny.random_model(share_embeddings=False)
    lengths = {"encoder_sequence_length": 24, "decoder_sequence_length": 20}
    lengths |= {"extra_length": 4, "length_factor": 0.5}
    task = TransformerSeq2SeqLM.from_model(model, vocabulary, sampler, **lengths)
    task.compile(run_eagerly=True)
    return task


@pytest.fixture(scope="module")
def preset(task, tmp_path_factory):
    """A preset in another folder than it was written to."""
    folder = tmp_path_factory.mktemp("presets")
    task.save_to_preset(str(folder / "written"))
    return shutil.move(folder / "written", folder / "moved")


def test_a_preset_contains_all_settings(task, preset):
    copy = keras_hub.models.Seq2SeqLM.from_preset(str(preset))
    assert copy.get_config() == task.get_config()
    assert copy.preprocessor.encoder_sequence_length == 24
    assert copy.sampler.get_config() == task.default_sampler.get_config()
    for one, other in zip(copy.weights, task.weights, strict=True):
        np.testing.assert_array_equal(one, other)
    copy.compile(run_eagerly=True)
    assert copy.generate(LINES) == task.generate(LINES)
    tokenizer = keras_hub.tokenizers.Tokenizer.from_preset(str(preset))
    assert tokenizer(LINES) == task.preprocessor.tokenizer(LINES)


@pytest.mark.parametrize("dtype", ["bfloat16", "mixed_bfloat16"])
def test_presets_in_16_bits(dtype, task, preset, tmp_path):
    model = keras_hub.models.Seq2SeqLM.from_preset(str(preset), dtype=dtype)
    model.save_to_preset(str(tmp_path))
    copy = keras_hub.models.Seq2SeqLM.from_preset(str(tmp_path), dtype=dtype)
    assert copy.backbone.transformer.compute_dtype == "bfloat16"
    for one, other in zip(copy.weights, model.weights, strict=True):
        assert one.dtype == other.dtype
        assert keras.ops.all(one == other)


def test_a_frozen_backbone_stays_frozen(preset, tmp_path):
    model = keras_hub.models.Seq2SeqLM.from_preset(str(preset))
    model.backbone.trainable = False
    assert model.trainable_variables == []
    model.save_to_preset(str(tmp_path))
    copy = keras_hub.models.Seq2SeqLM.from_preset(str(tmp_path))
    assert copy.trainable_variables == []
    assert len(copy.variables) == len(model.variables)


PROJECTIONS = ("query", "key", "value", "output", "hidden")


def test_int8_reaches_every_matmul_and_is_reloaded_exactly(task, preset, tmp_path):
    model = keras_hub.models.Seq2SeqLM.from_preset(str(preset))
    layers = model.backbone.transformer._flatten_layers()
    matmuls = [x for x in layers if x.name in PROJECTIONS or "embedding" in x.name]
    matmuls.append(model.backbone.token_embedding)
    with pytest.warns(UserWarning, match="does not have a `quantize` method"):
        model.quantize("int8")
    assert len(matmuls) == 4 + 2 + 8 + 2 + 3
    assert {x.quantization_mode for x in matmuls} == {"int8"}
    model.save_to_preset(str(tmp_path))
    copy = keras_hub.models.Seq2SeqLM.from_preset(str(tmp_path))
    for one, other in zip(copy.weights, model.weights, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    for each in (model, copy):
        each.compile(run_eagerly=True)
    assert copy.generate(LINES) == model.generate(LINES) != task.generate(LINES)


def test_lora_factors_are_those_of_queries_and_values(preset, tmp_path):
    model, copy = (keras_hub.models.Seq2SeqLM.from_preset(str(preset)) for _ in "ab")
    model.backbone.enable_lora(4)
    trained = {v.path.rpartition("/")[0] for v in model.trainable_variables}
    stacks = ("encoder", "decoder", "decoder")
    kinds = ("self_attention", "self_attention", "cross_attention")
    assert trained == {
        f"transformer/{stack}/layer_0/{kind}/{name}"
        for stack, kind in zip(stacks, kinds, strict=True)
        for name in ("query", "value")
    }
    model.compile(keras.optimizers.Adam(0.01), run_eagerly=True)
    pairs = {"encoder_text": LINES, "decoder_text": LINES}
    model.fit(pairs, batch_size=6, epochs=2, shuffle=False, verbose=0)
    model.backbone.save_lora_weights(str(tmp_path / "model.lora.h5"))
    copy.backbone.load_lora_weights(str(tmp_path / "model.lora.h5"))
    copy.compile(run_eagerly=True)
    assert copy.generate(LINES) == model.generate(LINES)
    # Keras adds the factors to the weights that it saves.
    model.save_to_preset(str(tmp_path / "preset"))
    merged = keras_hub.models.Seq2SeqLM.from_preset(str(tmp_path / "preset"))
    merged.compile(run_eagerly=True)
    assert merged.generate(LINES) == model.generate(LINES)


@pytest.mark.medium
@pytest.mark.parametrize("backend", ["jax", "torch", "tensorflow"])
def test_other_processes_translate_and_train(backend, task, preset):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    process = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", PROGRAM, str(preset)],
        input=json.dumps(LINES),
        cwd=ROOT,
        env=os.environ | {"KERAS_BACKEND": backend, "CUDA_VISIBLE_DEVICES": "-1"},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr[-3000:]
    translations, losses, modules = json.loads(process.stdout.splitlines()[-1])
    assert translations == task.generate(LINES)
    assert losses[-1] < losses[0]
    # These rooms are for TensorFlow only.
    rooms = {name.split(".")[1] for name in modules}
    assert rooms.isdisjoint({"decoding", "fast", "runs", "translation"})
    assert "t2t_repro.tokenizers.tokenizer" not in modules
