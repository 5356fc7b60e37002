"""Fixtures: tokenizers and a model directory."""

import pytest

from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.vocabulary import build_vocabulary
from tests import tiny
from tests.runs.directories import HPARAMS, provenance


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    """Two tokenizers with vocabularies of 300 and 290 subwords."""
    folder = tmp_path_factory.mktemp("vocabularies")
    lines = [side for pair in tiny.pairs("train") for side in pair]
    tokenizers = []
    for size in (300, 290):
        path = folder / str(size) / "vocab.model"
        path.parent.mkdir()
        build_vocabulary("sentencepiece", lines, size, path)
        tokenizers.append(load_tokenizer(path))
    return tokenizers


@pytest.fixture
def new_model(tmp_path, tokenizers):
    """A model directory without checkpoints."""
    directory = ModelDir(tmp_path / "models" / "m")
    directory.begin(HPARAMS, provenance(tokenizers[0]), tokenizers[0])
    return directory
