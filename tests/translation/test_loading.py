"""Tests of loading models and ensembles from model directories."""

import itertools
import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.vocabulary import build_vocabulary
from t2t_repro.translation import loading
from t2t_repro.translation.build import build_translator
from t2t_repro.translation.loading import load_models
from tests import tiny

pytestmark = pytest.mark.medium


def test_search_settings_default_to_the_model(trained):
    loaded = load_models(str(trained.model_dir))
    assert loaded.checkpoints == [str(trained.model_dir / "averaged")]
    expected = DecodingConfig(beam_size=2, alpha=0.6, extra_length=2)
    assert build_translator(loaded).search == expected
    loaded = load_models(trained.model_dir, "latest")
    assert loaded.checkpoints == [
        str(trained.model_dir / "checkpoints" / "step-00000004")
    ]
    search = loaded.search(beam_size=3, alpha=0.0)
    assert search == DecodingConfig(beam_size=3, alpha=0.0, extra_length=2)


def test_a_length_limit_of_zero_is_rejected(trained):
    loaded = load_models(trained.model_dir)
    assert loaded.search(extra_length=0).longest(3) == 3
    fixed = loaded.hparams.replace(decode_length_factor=0.0, decode_extra_length=9)
    loaded = replace(loaded, hparams=fixed)
    assert loaded.search(extra_length=1).longest(3) == 1
    with pytest.raises(UserError, match="extra_length is 0, so every translation"):
        loaded.search(extra_length=0)


def test_loads_the_weights_of_the_named_checkpoints_and_models(trained, trained_copy):
    directory = ModelDir(trained.model_dir)
    folders = [trained.model_dir / f"checkpoints/step-0000000{n}" for n in (2, 4)]
    names = ["averaged", "latest", str(folders[0]), str(trained_copy.model_dir)]
    loaded = load_models(directory, names)
    averaged = [
        each / "averaged" for each in (trained.model_dir, trained_copy.model_dir)
    ]
    expected = [averaged[0], folders[1], folders[0], averaged[1]]
    assert loaded.checkpoints == list(map(str, expected))
    assert loaded.tokenizer.fingerprint == directory.tokenizer().fingerprint
    assert loaded.hparams == directory.hparams()
    values = [[v.numpy() for v in model.trainable_variables] for model in loaded.models]
    for one, other in zip(values[0], values[3], strict=True):
        np.testing.assert_array_equal(one, other)
    for first, second in itertools.pairwise(values[:3]):
        assert any((a != b).any() for a, b in zip(first, second, strict=True))
    both = load_models(directory, f"averaged,{trained_copy.model_dir}")
    assert both.checkpoints == list(map(str, averaged))


def test_only_the_first_model_selects_the_bits_of_int8(trained, monkeypatch):
    bits = []

    def quantize(*arguments):
        bits.append(arguments[-1])
        return 7

    monkeypatch.setattr(loading, "quantize_model", quantize)
    load_models(trained.model_dir, ["averaged", "latest"], precision="int8")
    assert bits == [None, 7]


def test_a_folder_may_have_a_comma_in_its_name(trained, tmp_path):
    folder = tmp_path / "a,b"
    with pytest.raises(UserError, match=f"checkpoint {tmp_path / 'a'}: no such"):
        load_models(trained.model_dir, str(folder))
    shutil.copytree(trained.model_dir, folder)
    loaded = load_models(trained.model_dir, str(folder))
    assert loaded.checkpoints == [str(folder / "averaged")]


def test_rejects_models_with_different_vocabularies(trained, trained_copy):
    other = trained_copy.model_dir
    (vocabulary,) = other.glob("*.model")
    lines = [target for _, target in tiny.pairs("train")]
    build_vocabulary("sentencepiece", lines, 300, vocabulary)
    meta = json.loads((other / "model.json").read_text(encoding="utf-8"))
    meta["vocabulary_fingerprint"] = load_tokenizer(other).fingerprint
    (other / "model.json").write_text(json.dumps(meta), encoding="utf-8")
    words = re.escape(f"{trained.model_dir} and {other} have different vocabularies;")
    with pytest.raises(UserError, match=words):
        load_models(ModelDir(trained.model_dir), ["best", str(other)])


def test_checkpoint_names_refer_to_the_model_directory(
    trained, trained_copy, monkeypatch
):
    """The current directory, a model directory, has folders of the same names."""
    monkeypatch.chdir(trained_copy.model_dir)
    directory = ModelDir(trained.model_dir)
    for name in ("averaged", "best_bleu"):
        assert (trained_copy.model_dir / name).is_dir()
        loaded = load_models(directory, [name])
        assert loaded.model_dirs == [directory]
        (checkpoint,) = loaded.checkpoints
        assert checkpoint.startswith(str(trained.model_dir))


def test_a_checkpoint_uses_the_hparams_of_its_own_directory(trained, trained_copy):
    """The search settings are those of the model directory that was named."""
    other = trained_copy.model_dir
    text = (other / "hparams.yaml").read_text(encoding="utf-8")
    changed = text.replace("num_heads: 2", "num_heads: 4")
    assert changed != text
    (other / "hparams.yaml").write_text(changed, encoding="utf-8")
    loaded = load_models(ModelDir(trained.model_dir), [str(other / "averaged")])
    assert loaded.model_dirs[0].hparams().num_heads == 4
    layer = next(iter(loaded.models[0].decoder.layers_in_order()))
    assert layer.self_attention.num_heads == 4
    assert loaded.hparams.num_heads == 2


def test_names_an_ensemble_member_that_is_missing(trained, tmp_path):
    directory = ModelDir(trained.model_dir)
    with pytest.raises(UserError, match=f"{tmp_path} holds no model"):
        load_models(ModelDir(tmp_path), ["best"])
    with pytest.raises(UserError, match="checkpoint step-9: no such folder"):
        load_models(directory, ["best", "step-9"])
