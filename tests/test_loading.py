"""From a model directory to a translator, and from several to an ensemble."""

import json
import re

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.data.tokenizers import load_tokenizer
from t2t_repro.data.vocabulary import build_vocabulary
from t2t_repro.errors import UserError
from t2t_repro.loading import load_ensemble, load_translator
from t2t_repro.model_dir import ModelDir
from tests import tiny


def test_a_translator_decodes_as_the_model_says_unless_told_otherwise(trained):
    directory = ModelDir(trained.model_dir)
    translator, path = load_translator(directory)
    assert path == str(trained.model_dir / "averaged")
    assert (translator.beam_size, translator.alpha) == (2, 0.6)
    assert translator.extra_length == 2
    translator, path = load_translator(directory, "latest", beam_size=3, alpha=0.0)
    assert path == str(trained.model_dir / "checkpoints" / "step-00000004")
    assert (translator.beam_size, translator.alpha) == (3, 0.0)


def test_a_loaded_translator_has_the_weights_of_the_checkpoint_asked_for(trained):
    directory = ModelDir(trained.model_dir)
    texts, scores = {}, {}
    for name in ("averaged", "latest"):
        translator, _ = load_translator(directory, name, beam_size=1)
        (found,) = translator.translate_lines(["one two"])
        texts[name], scores[name] = found.text, found.score
    assert scores["averaged"] != scores["latest"]


def first_log_probs(decoder):
    """What a decoder gives the first symbols of one sentence, float (V,)."""
    inputs = tf.constant([[5, 6, 1]])
    ids = tf.zeros([1, decoder.beam_size], tf.int32)
    logits, _ = decoder.step(ids, tf.constant(0), decoder.start(inputs))
    return tf.nn.log_softmax(logits)[0, 0].numpy()


def test_an_ensemble_is_of_directories_or_of_checkpoints(trained):
    directory = trained.model_dir
    folders = [directory / f"checkpoints/step-0000000{step}" for step in (2, 4)]
    found = load_ensemble([directory, str(folders[0]), folders[1]])
    assert found.checkpoints == [str(directory / "averaged"), *map(str, folders)]
    assert found.decoder.beam_size == found.hparams.beam_size == 2
    assert found.tokenizer.fingerprint == ModelDir(directory).tokenizer().fingerprint
    alone = [load_ensemble([folder], beam_size=1).decoder for folder in folders]
    both = load_ensemble(folders, beam_size=1).decoder
    single = [first_log_probs(decoder) for decoder in alone]
    assert np.abs(single[0] - single[1]).max() > 1e-3
    mean = np.log((np.exp(single[0]) + np.exp(single[1])) / 2)
    np.testing.assert_allclose(first_log_probs(both), mean, atol=1e-5)


def test_models_of_different_vocabularies_are_refused(trained, trained_copy):
    other = trained_copy.model_dir
    (vocabulary,) = other.glob("*.model")
    lines = [target for _, target in tiny.pairs("train")]
    build_vocabulary("sentencepiece", lines, 300, vocabulary)
    meta = json.loads((other / "model.json").read_text(encoding="utf-8"))
    meta["vocabulary_fingerprint"] = load_tokenizer(other).fingerprint
    (other / "model.json").write_text(json.dumps(meta), encoding="utf-8")
    words = re.escape(f"{trained.model_dir} and {other} have different vocabularies;")
    with pytest.raises(UserError, match=words):
        load_ensemble([trained.model_dir, other])


def test_a_member_that_is_no_model_is_named(trained, tmp_path):
    with pytest.raises(UserError, match=f"--model_dir {tmp_path} holds no model"):
        load_ensemble([trained.model_dir, tmp_path])
    absent = trained.model_dir / "checkpoints" / "step-9"
    with pytest.raises(UserError, match="step-9: no such folder"):
        load_ensemble([absent])
