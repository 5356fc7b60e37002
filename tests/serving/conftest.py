"""Fixtures: models with random weights, each exported once."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from t2t_repro import fast
from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.fast import int8_matmul, quantization
from t2t_repro.models.transformer import Transformer
from t2t_repro.serving.saved_model import write_saved_model
from t2t_repro.serving.server_files import write_server_files
from t2t_repro.serving.signatures import ServingModule
from t2t_repro.tokenizers.marian_tokenizer import MarianTokenizer
from t2t_repro.tokenizers.tokenizer import Tokenizer
from t2t_repro.translation.calibration import measure_ranges
from tests import tiny
from tests.serving import small


@pytest.fixture(scope="session")
def model() -> Transformer:
    return small.random_model(small.VOCAB_SIZE)


@pytest.fixture(scope="session")
def module(model: Transformer, tokenizer: Tokenizer) -> ServingModule:
    search = DecodingConfig(beam_size=small.BEAM_SIZE, extra_length=small.EXTRA_LENGTH)
    return ServingModule([model], tokenizer, search, small.MAX_INPUT_LENGTH)


@pytest.fixture(scope="session")
def marian_module(marian_arguments: tuple[Any, ...]) -> ServingModule:
    return ServingModule(*marian_arguments)


@pytest.fixture(scope="session")
def marian_arguments() -> tuple[Any, ...]:
    """Returns the arguments of a module with two vocabularies and Marian's search."""
    models, pieces = [], []
    for side in range(2):
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(pair[side] for pair in tiny.pairs("train")),
            model_writer=model,
            vocab_size=90 - 10 * side,
            hard_vocab_limit=False,
            minloglevel=2,
        )
        models.append(model.getvalue())
        processor = sentencepiece.SentencePieceProcessor(model_proto=models[-1])
        names = [processor.id_to_piece(n) for n in range(processor.vocab_size())]
        pieces.append(["<pad>", "</s>", *(p for p in names if p != "</s>"), ">>deu<<"])
    tokenizer = MarianTokenizer.from_pieces(*models, *pieces)
    target = tokenizer.target_vocab_size
    model = small.random_model(tokenizer.vocab_size, target_vocab_size=target)
    unknown = tokenizer.target.unknown_id
    search = DecodingConfig(
        small.BEAM_SIZE,
        alpha=1.0,
        extra_length=0,
        algorithm="marian",
        length_factor=1.5,
        never=(unknown,),
    )
    return [model], tokenizer, search, small.MAX_INPUT_LENGTH


@pytest.fixture(scope="session")
def int8_module(tokenizer: Tokenizer) -> ServingModule:
    """Returns `module` with 7-bit weights, for any x86-64 processor."""
    if int8_matmul.unsupported_reason():
        pytest.skip(f"{int8_matmul.unsupported_reason()}")
    fast.install("CPU")
    model = small.random_model(small.VOCAB_SIZE)
    search = DecodingConfig(beam_size=small.BEAM_SIZE, extra_length=small.EXTRA_LENGTH)
    bounds = measure_ranges(small.sentences(9), model, tokenizer, search)
    quantization.quantize_model(model, bounds, weight_bits=7)
    return ServingModule([model], tokenizer, search, small.MAX_INPUT_LENGTH)


@pytest.fixture(scope="session")
def export_dir(module: ServingModule, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    write_saved_model(module, folder / "1", small.NAME, "# small\n")
    write_server_files(folder, small.NAME)
    return folder
