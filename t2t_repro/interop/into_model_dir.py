"""A model directory that an import makes: whole, or not at all."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from t2t_repro.hparams import HParams
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables
from t2t_repro.runs import checkpoints
from t2t_repro.runs.model_dir import ModelDir, build_model
from t2t_repro.runs.run_metadata import RunMetadata
from t2t_repro.system.atomic_dir import put_in_place
from t2t_repro.system.errors import UserError
from t2t_repro.system.locks import exclusive_lock
from t2t_repro.tokenizers.tokenizer import Tokenizer

# How an imported model is trained on: a rate and a warm-up for one that knows something
# already.
TRAINING_ON: dict[str, Any] = {
    "label_smoothing": 0.1,
    "learning_rate_schedule": "marian",
    "learning_rate_scale": 0.0003,
    "warmup_steps": 100,
    "clip_norm": 5.0,
    "tokens_per_batch": 4096,
}


def build(
    hparams: HParams, target_vocab_size: int | None, weights: checkpoints.Arrays
) -> Transformer:
    """Builds the model of weights by our names, which are all of its variables."""
    built = build_model(hparams, hparams.vocab_size, target_vocab_size)
    variables = named_variables(built)
    assert {name: v.shape for name, v in variables.items()} == {
        name: value.shape for name, value in weights.items()
    }
    for name, variable in variables.items():
        variable.assign(weights[name])
    return built


def write_untrained(
    model_dir: Path,
    hparams: HParams,
    tokenizer: Tokenizer,
    languages: tuple[str, str],
    model: Transformer,
    origin: str,
) -> None:
    """Does as `write`, with moments of 0, as before the first update.

    `origin` is the file of the weights.
    """
    weights = checkpoints.copied(named_variables(model))
    moments = {
        f"{moment}/{name}": np.zeros_like(value)
        for moment in ("m", "v")
        for name, value in weights.items()
    }
    meta = {"imported_from": origin}
    write(model_dir, hparams, tokenizer, languages, weights, moments, meta)


def write(
    model_dir: Path,
    hparams: HParams,
    tokenizer: Tokenizer,
    languages: tuple[str, str],
    weights: checkpoints.Arrays,
    moments: checkpoints.Arrays,
    meta: Mapping[str, Any],
    step: int = 0,
) -> None:
    """Makes the directory, with one checkpoint; it is built aside and then renamed.

    Args:
        model_dir: absent or empty before.
        hparams: with which the model can be trained on.
        tokenizer: the model's.
        languages: of the sources and of the targets.
        weights: float32, by our names.
        moments: Adam's, float32, ``m/NAME`` and ``v/NAME``.
        meta: what the checkpoint says of its origin.
        step: how many updates were done before.

    Raises:
        UserError: it cannot be written, or another process imports there.
    """
    source_lang, target_lang = languages
    provenance = RunMetadata(
        problem=None,
        source_lang=source_lang,
        target_lang=target_lang,
        data_dir=None,
        problem_fingerprint=None,
        vocabulary_fingerprint=tokenizer.fingerprint,
        vocabulary_given=True,
    )
    with _aside(model_dir) as directory:
        directory.begin(hparams, provenance, tokenizer)
        checkpoints.save(directory.checkpoint_dir, step, weights, moments, meta=meta)


@contextmanager
def _aside(model_dir: Path) -> Iterator[ModelDir]:
    """Yields a directory that takes the name of `model_dir` when it is whole.

    UserError: it cannot be written, or another process imports there.
    """

    def taken() -> None:
        raise UserError(f"--model_dir {model_dir}: another process imports into it")

    final = model_dir.resolve()  # "." has no name; a link stays.
    folder = final.with_name(f".importing-{final.name}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with exclusive_lock(folder, taken):
            try:
                # What a killed process left.
                for left in folder.iterdir():
                    shutil.rmtree(left) if left.is_dir() else left.unlink()
                yield ModelDir(folder)
                put_in_place(folder, final)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        raise UserError(f"--model_dir {model_dir}: {error.strerror}") from None


def refuse_to_replace(model_dir: Path) -> None:
    """Raises UserError if the directory is there and holds something."""
    if model_dir.exists() and not (model_dir.is_dir() and not any(model_dir.iterdir())):
        raise UserError(
            f"--model_dir {model_dir} is there and not empty; name another directory"
        )
