"""What is served in these tests: a model of random weights, exported once."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from t2t_repro.decoding.search import Search
from t2t_repro.models.transformer import Transformer
from t2t_repro.serving.saved_model import export
from t2t_repro.serving.server_files import write_server_files
from t2t_repro.serving.signatures import ServingModule
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.tokenizer import Tokenizer
from t2t_repro.tokenizers.vocabulary import build_vocabulary
from tests import tiny
from tests.serving import small


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.model"
    lines = itertools.chain.from_iterable(tiny.pairs("train"))
    build_vocabulary("sentencepiece", lines, small.VOCAB_SIZE, path)
    return load_tokenizer(path)


@pytest.fixture(scope="session")
def model() -> Transformer:
    return small.random_model(small.VOCAB_SIZE)


@pytest.fixture(scope="session")
def module(model: Transformer, tokenizer: Tokenizer) -> ServingModule:
    search = Search(beam_size=small.BEAM_SIZE, extra_length=small.EXTRA_LENGTH)
    return ServingModule([model], tokenizer, search, small.MAX_INPUT_LENGTH)


@pytest.fixture(scope="session")
def export_dir(module: ServingModule, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    export(module, folder, model_name=small.NAME, model_card="# small\n")
    write_server_files(folder, small.NAME)
    return folder
