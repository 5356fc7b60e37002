"""Both sides of `benchmark_tensor2tensor.py`: files for the peer, turns of our own.

`settings` are the flags of that command, and the folder `work_dir`; the files are as
`peers/tensor2tensor_speed.py` describes them.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from golden_checks.t2t_variables import to_t2t

from benchmarks.machine import say
from t2t_repro import hparams as hparam_sets
from t2t_repro import problems
from t2t_repro.batches import pipeline
from t2t_repro.batches.packed_batch import rectangle
from t2t_repro.data.prepared_data import PreparedData, prepare
from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.hparams import HParams
from t2t_repro.models.variables import named_variables
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.system.atomic_file import read_lines
from t2t_repro.system.errors import UserError
from t2t_repro.training.procedure import batching_of
from t2t_repro.translation.loading import search_of
from t2t_repro.translation.parallel_batches import give_each_batch_a_core
from t2t_repro.translation.translator import Translator

Ids = npt.NDArray[np.int32]

BATCHES, WEIGHTS, SENTENCES = "batches.npz", "weights.npz", "sentences.npz"

# What tensor2tensor's transformer_base_v1 is, beyond the sizes that it is given.
_ARCHITECTURE = {"norm": "post", "position": "sinusoid", "share_embeddings": True}
_TRAINING = {
    "target_space_embedding": True,
    "dropout": 0.1,
    "attention_dropout": 0.0,
    "ffn_dropout": 0.0,
    "label_smoothing": 0.1,
    "clip_norm": 0.0,
}


def write_batches(settings: Namespace, count: int) -> dict[str, Any]:
    """Writes the first batches of the training; returns the peer's work."""
    hparams, data = _training_hparams(settings), _training_data(settings)
    config = batching_of(hparams)
    if not config.is_one_part:
        raise UserError(
            f"--hparams {settings.hparams}: tensor2tensor takes one rectangle an "
            "update; set max_tokens_per_device to at least tokens_per_batch"
        )
    batches = pipeline.batches(data.train, config, hparams.seed).take(count)
    file = Path(settings.work_dir) / BATCHES
    # The only part of each: a row a sentence.
    sides = ([side.numpy() for side in rectangle(batch, 0)] for batch in batches)
    np.savez(file, **flat_batches(sides))
    return _sizes(hparams, data.tokenizer.vocab_size) | {
        "batches": str(file),
        "warmup_steps": hparams.warmup_steps,
    }


def flat_batches(batches: Iterable[list[Ids]]) -> dict[str, Any]:
    """Lays batches, inputs and targets int32 (rows, length) each, one after another.

    For each side `SIDE_flat` int32 (ids,), and `SIDE_shape` int64 (batches, 2).
    """
    arrays: dict[str, Any] = {}
    for side, ids in zip(
        ("inputs", "targets"), zip(*batches, strict=True), strict=True
    ):
        arrays[f"{side}_flat"] = np.concatenate([each.ravel() for each in ids])
        arrays[f"{side}_shape"] = np.array([each.shape for each in ids], np.int64)
    return arrays


def train(given: Mapping[str, Any]) -> None:
    """Trains on the text, the batches that `write_batches` has written."""
    # Prints nothing but answers from here on, so only a worker may import it.
    from benchmarks.training import train_in_turn

    settings = Namespace(**given)
    data = _training_data(settings)
    hparams = _training_hparams(settings)
    train_in_turn(hparams, data.train, data.tokenizer.vocab_size)


def write_sentences(settings: Namespace) -> tuple[dict[str, Any], int]:
    """Writes weights and sentences, longest first.

    Returns the peer's work, and how many sentences there are.
    """
    directory = ModelDir(Path(settings.model_dir))
    hparams = directory.hparams()
    _require(hparams, _ARCHITECTURE, "--model_dir")
    checkpoint = directory.checkpoint(settings.checkpoint)
    model, tokenizer = directory.model(checkpoint), directory.tokenizer()
    values = {name: v.numpy() for name, v in named_variables(model).items()}
    work_dir = Path(settings.work_dir)
    weights: dict[str, Any] = to_t2t(values, hparams.norm)
    np.savez(work_dir / WEIGHTS, **weights)
    translator = Translator(model, tokenizer, search_of(hparams, tokenizer))
    lines = read_lines(Path(settings.data_dir) / settings.test_file)
    inputs = translator.encode(tf.constant(lines)).numpy()
    order = np.argsort(-np.count_nonzero(inputs, axis=1), kind="stable")
    np.savez(work_dir / SENTENCES, inputs=inputs[order])
    names = ("batch_size", "beam_size", "alpha", "extra_length")
    return (
        _sizes(hparams, len(values["embedding/table"]))
        | {name: getattr(settings, name) for name in names}
        | {"weights": str(work_dir / WEIGHTS)}
        | {"sentences": str(work_dir / SENTENCES)}
    ), len(lines)


def translate(given: Mapping[str, Any]) -> None:
    """Translates the sentences, as many batches as each request says."""
    from peers.turns import memory, turns

    before, settings = memory("VmRSS"), Namespace(**given)
    give_each_batch_a_core()  # As the command does.
    with np.load(Path(settings.work_dir) / SENTENCES) as arrays:
        batches = cut_batches(arrays["inputs"], settings.batch_size)
    directory = ModelDir(Path(settings.model_dir))
    search = DecodingConfig(
        beam_size=settings.beam_size,
        alpha=settings.alpha,
        extra_length=settings.extra_length,
    )
    model = directory.model(directory.checkpoint(settings.checkpoint))
    translator = Translator(model, directory.tokenizer(), search)
    for count, answer in turns(before):
        answer["ids"], answer["scores"] = [], []
        for ids, scores in translator.translate_batches(batches[:count]):
            answer["ids"] += ids[:, 0].numpy().tolist()
            answer["scores"] += scores[:, 0].numpy().tolist()


def cut_batches(inputs: Ids, size: int) -> list[tf.Tensor]:
    """Cuts int32 (sentences, length) into batches, each as long as its longest.

    Sentences are 0-padded, the longest first.
    """
    parts = [inputs[start : start + size] for start in range(0, len(inputs), size)]
    return [tf.constant(part[:, : np.count_nonzero(part[0])]) for part in parts]


def _sizes(hparams: HParams, vocab_size: int) -> dict[str, Any]:
    names = ("d_model", "d_ff", "num_heads", "num_layers")
    return {name: getattr(hparams, name) for name in names} | {"vocab_size": vocab_size}


def _training_hparams(settings: Namespace) -> HParams:
    hparams = hparam_sets.load(settings.hparams)
    _require(hparams, _ARCHITECTURE | _TRAINING, f"--hparams {settings.hparams}")
    return hparams


def _training_data(settings: Namespace) -> PreparedData:
    """Encodes the text, or finds it encoded before."""
    problem = problems.create(
        "files", settings.data_dir, settings.source_lang, settings.target_lang
    )
    return prepare(
        problem,
        hparam_sets.load(settings.hparams),
        Path(settings.work_dir),
        say,
        vocab_file=Path(settings.vocab_file),
    )


def _require(hparams: HParams, wanted: dict[str, Any], flag: str) -> None:
    """Refuses (UserError) values other than tensor2tensor's transformer_base_v1."""
    d_k = hparams.d_model // hparams.num_heads
    sizes = {"key_size": d_k, "value_size": d_k, "decoder_layers": hparams.num_layers}
    for name, value in (wanted | sizes).items():
        if getattr(hparams, name) != value:
            raise UserError(
                f"{flag}: {name}={getattr(hparams, name)}, but the comparison is with "
                f"transformer_base_v1, which has {value}"
            )
