"""Vocabularies, and a directory in which a training was begun."""

import pytest

from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.vocabulary import build_vocabulary
from tests import tiny
from tests.runs.directories import HPARAMS, provenance


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    """Two vocabularies, of 300 and of 290 subwords."""
    folder = tmp_path_factory.mktemp("vocabularies")
    lines = [side for pair in tiny.pairs("train") for side in pair]
    made = []
    for size in (300, 290):
        path = folder / str(size) / "vocab.model"
        path.parent.mkdir()
        build_vocabulary("sentencepiece", lines, size, path)
        made.append(load_tokenizer(path))
    return made


@pytest.fixture
def begun(tmp_path, tokenizers):
    """A directory in which a training was begun."""
    directory = ModelDir(tmp_path / "models" / "m")
    directory.begin(HPARAMS, provenance(tokenizers[0]), tokenizers[0])
    return directory
