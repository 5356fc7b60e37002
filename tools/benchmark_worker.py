"""t2t_repro's part of `benchmark_tensor2tensor.py`: one task, one process.

    python benchmark_worker.py {prepare,train,export,translate} settings.json

The settings are the flags of `benchmark_tensor2tensor.py`; files go to their
`work_dir`, in the formats that `peers/tensor2tensor_multi30k.py` describes. The
result is one JSON object on standard output, with that script's keys.
"""

import json
import os
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from golden_checks.t2t_variables import to_t2t

from t2t_repro import fast, problems
from t2t_repro import hparams as hparam_sets
from t2t_repro.batches import pipeline
from t2t_repro.batches.parts import rectangle
from t2t_repro.command_line import cli
from t2t_repro.data.prepared_data import PreparedData, prepare
from t2t_repro.decoding.search import Search
from t2t_repro.fast.memory import keep_freed_memory
from t2t_repro.hparams import HParams
from t2t_repro.models.variables import named_variables
from t2t_repro.runs.model_dir import ModelDir, build_model
from t2t_repro.system.errors import UserError
from t2t_repro.system.text_files import read_lines
from t2t_repro.training import strategy as strategies
from t2t_repro.training.loop import TrainingLoop
from t2t_repro.training.monitor import LOG_STEPS, Monitor
from t2t_repro.training.procedure import batching_of
from t2t_repro.training.step import StepResult
from t2t_repro.translation.loading import search_of
from t2t_repro.translation.side_by_side import give_each_batch_a_core
from t2t_repro.translation.translator import Translator

Ids = npt.NDArray[np.int32]
Arrays = dict[str, Any]

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
_TARGET_SPACE = 0  # The row of the target-space table that t2t_repro adds.


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the task that the command line names."""
    task, settings = sys.argv[1:] if argv is None else argv
    values = json.loads(Path(settings).read_text(encoding="utf-8"))
    print(json.dumps(TASKS[task](Namespace(**values)) | {"tensorflow": tf.__version__}))


def prepare_training(settings: Namespace) -> dict[str, Any]:
    """Writes the batches of the training for tensor2tensor.

    Returns:
        `peer_flags`: what makes tensor2tensor's model and schedule the same.
    """
    hparams, data = _training_hparams(settings), _training_data(settings)
    config = batching_of(hparams)
    if not config.is_one_part:
        raise UserError(
            f"--hparams {settings.hparams}: tensor2tensor takes one rectangle an "
            "update; set max_tokens_per_device to at least tokens_per_batch"
        )
    batches = pipeline.batches(data.train, config, hparams.seed).take(settings.steps)
    np.savez(
        Path(settings.work_dir) / "batches.npz",
        **flat_batches(_only_part(batch) for batch in batches),
        vocab_size=data.tokenizer.vocab_size,
        target_space_id=_TARGET_SPACE,
    )
    flags = {
        "hidden_size": hparams.d_model,
        "filter_size": hparams.d_ff,
        "num_heads": hparams.num_heads,
        "num_layers": hparams.num_layers,
        "warmup_steps": hparams.warmup_steps,
    }
    return {"peer_flags": flags, "pairs": len(data.train)}


def _only_part(batch: dict[str, tf.Tensor]) -> dict[str, Ids]:
    """Returns a batch of one part as `inputs` and `targets`, a row a sentence."""
    inputs, targets = rectangle(batch, 0)
    return {"inputs": inputs.numpy(), "targets": targets.numpy()}


def flat_batches(batches: Iterable[dict[str, Ids]]) -> Arrays:
    """Lays batches one after another.

    Args:
        batches: `inputs` int32 (rows, source) and `targets` int32 (rows, target) of
            each.

    Returns:
        For each side `SIDE_flat` int32 (ids,), row after row, and `SIDE_shape` int64
        (batches, 2).
    """
    kept = list(batches)
    arrays: Arrays = {}
    for side in ("inputs", "targets"):
        arrays[f"{side}_flat"] = np.concatenate([b[side].ravel() for b in kept])
        arrays[f"{side}_shape"] = np.array([b[side].shape for b in kept], np.int64)
    return arrays


class StepClock(Monitor):
    """Times the steps after the first `measure_from`, beside a monitor's work.

    Args:
        train_steps: the last step.
        measure_from: steps before the clock starts.
    """

    def __init__(self, train_steps: int, measure_from: int) -> None:
        # Reports and pauses as in any training, but writes no file.
        super().__init__(None, train_steps, 0, sys.stderr)
        self._measure_from = measure_from
        self._all: list[StepResult] = []
        self._started = self._ended = time.perf_counter()

    def step_done(self, step: int, result: StepResult | None) -> None:
        """Takes the result of an update; see `Monitor`.

        Raises:
            UserError: the update was skipped, so the comparison is void.
        """
        super().step_done(step, result)
        if result is None:
            raise UserError(f"step {step} was skipped: its loss is not finite")
        self._all.append(result)
        self._ended = time.perf_counter()
        if step == self._measure_from:
            self._started = self._ended

    def result(self) -> dict[str, Any]:
        """Returns seconds, target tokens and the losses every `LOG_STEPS` steps."""
        losses = [float(result.loss) for result in self._all]
        ends = [*range(LOG_STEPS, len(losses), LOG_STEPS), len(losses)]
        starts = [0, *ends[:-1]]
        measured = self._all[self._measure_from :]
        seconds = self._ended - self._started
        tokens = sum(round(float(result.tokens)) for result in measured)
        return {
            "command": "train",
            "steps": len(self._all),
            "measured_steps": len(measured),
            "seconds": seconds,
            "seconds_per_step": seconds / len(measured),
            "target_tokens": tokens,
            "tokens_per_second": tokens / seconds,
            "losses": [
                [end, float(np.mean(losses[start:end]))]
                for start, end in zip(starts, ends, strict=True)
            ],
        }


def train(settings: Namespace) -> dict[str, Any]:
    """Trains as `python -m t2t_repro.train` does, without validation."""
    keep_freed_memory()
    fast.install()  # As the command does.
    hparams, data = _training_hparams(settings), _training_data(settings)
    config = batching_of(hparams)
    strategy = strategies.choose("one_device")
    model = build_model(hparams, data.tokenizer.vocab_size)
    with tempfile.TemporaryDirectory() as folder:
        loop = TrainingLoop(model, hparams, strategy, Path(folder))
        clock = StepClock(settings.steps, settings.measure_from)
        loop.run(
            lambda step: pipeline.batches(data.train, config, hparams.seed, step),
            clock,
            validate=lambda step: None,
        )
    return clock.result()


def export(settings: Namespace) -> dict[str, Any]:
    """Writes weights and sentences for tensor2tensor, the longest sentence first.

    Returns:
        `peer_flags`: what the weights do not tell.
    """
    directory = ModelDir(Path(settings.model_dir))
    hparams = directory.hparams()
    _require(hparams, _ARCHITECTURE, "--model_dir")
    checkpoint = directory.checkpoint(settings.checkpoint)
    model = directory.model(checkpoint)
    values = {name: v.numpy() for name, v in named_variables(model).items()}
    variables = to_t2t(values, hparams.norm)
    work_dir = Path(settings.work_dir)
    weights: Arrays = {f"var/{name}": value for name, value in variables.items()}
    np.savez(work_dir / "weights.npz", **weights)

    translator = Translator(model, directory.tokenizer(), search_of(hparams))
    lines = read_lines(Path(settings.data_dir) / settings.test_file)
    inputs: Ids = translator.encode(tf.constant(lines)).numpy()
    order = np.argsort(-np.count_nonzero(inputs, axis=1), kind="stable")
    np.savez(
        work_dir / "sentences.npz", inputs=inputs[order], target_space_id=_TARGET_SPACE
    )
    return {
        "peer_flags": {"num_heads": hparams.num_heads},
        "checkpoint": str(checkpoint.path),
    }


def translate(settings: Namespace) -> dict[str, Any]:
    """Translates the sentences; the first batch runs once before the clock starts."""
    give_each_batch_a_core()  # As the command does.
    work_dir = Path(settings.work_dir)
    with np.load(work_dir / "sentences.npz") as arrays:
        batches = cut_batches(arrays["inputs"], settings.batch_size)
    started = time.perf_counter()
    translator = _translator(settings)
    loaded = time.perf_counter()
    translator.translate_ids(batches[0])
    warm = time.perf_counter()
    results = [
        (ids.numpy()[:, 0], scores.numpy()[:, 0])
        for ids, scores in translator.translate_batches(batches)
    ]
    seconds = time.perf_counter() - warm
    rows = [row for ids, _ in results for row in ids]
    hypotheses = np.zeros([len(rows), max(map(len, rows))], np.int32)
    for index, row in enumerate(rows):
        hypotheses[index, : len(row)] = row
    np.savez(
        work_dir / "t2t_repro.npz",
        ids=hypotheses,
        scores=np.concatenate([scores for _, scores in results]),
    )
    tokens = int(np.count_nonzero(hypotheses))
    return {
        "command": "translate",
        "sentences": len(rows),
        "start_seconds": loaded - started,
        "first_run_seconds": warm - loaded,
        "seconds": seconds,
        "tokens": tokens,
        "tokens_per_second": tokens / seconds,
    }


def cut_batches(inputs: Ids, size: int) -> list[tf.Tensor]:
    """Returns sentences in batches, each as long as its longest.

    Args:
        inputs: int32 (sentences, length), 0-padded, longest first.
        size: sentences per batch.
    """
    parts = [inputs[start : start + size] for start in range(0, len(inputs), size)]
    return [tf.constant(part[:, : np.count_nonzero(part[0])]) for part in parts]


def _translator(settings: Namespace) -> Translator:
    """Loads the model as `python -m t2t_repro.translate` does."""
    directory = ModelDir(Path(settings.model_dir))
    search = Search(
        beam_size=settings.beam_size,
        alpha=settings.alpha,
        extra_length=settings.extra_length,
    )
    model = directory.model(directory.checkpoint(settings.checkpoint))
    return Translator(model, directory.tokenizer(), search)


def _training_hparams(settings: Namespace) -> HParams:
    """Returns the set to train; nothing is saved before the clock has stopped."""
    hparams = hparam_sets.load(settings.hparams)
    _require(hparams, _ARCHITECTURE | _TRAINING, f"--hparams {settings.hparams}")
    if hparams.decoder_layers != hparams.num_layers:
        raise UserError(f"--hparams {settings.hparams}: num_decoder_layers differs")
    return hparams.replace(
        train_steps=settings.steps,
        checkpoint_steps=settings.steps,
        checkpoint_minutes=0.0,
        eval_steps=0,
    )


def _training_data(settings: Namespace) -> PreparedData:
    """Encodes the text, or finds it encoded by an earlier task."""
    problem = problems.create(
        "files", settings.data_dir, settings.source_lang, settings.target_lang
    )
    return prepare(
        problem,
        hparam_sets.load(settings.hparams),
        Path(settings.work_dir),
        lambda line: print(line, file=sys.stderr, flush=True),
        vocab_file=Path(settings.vocab_file),
    )


def _require(hparams: HParams, wanted: dict[str, Any], flag: str) -> None:
    """Refuses what tensor2tensor's transformer_base_v1 is not.

    Raises:
        UserError: a value differs; the first is named.
    """
    for name, value in wanted.items():
        if getattr(hparams, name) != value:
            raise UserError(
                f"{flag}: {name}={getattr(hparams, name)}, but the comparison is with "
                f"transformer_base_v1, which has {value}"
            )
    for name in ("key_size", "value_size"):
        if getattr(hparams, name) * hparams.num_heads != hparams.d_model:
            raise UserError(f"{flag}: d_k and d_v must be d_model / num_heads")


TASKS: dict[str, Callable[[Namespace], dict[str, Any]]] = {
    "prepare": prepare_training,
    "train": train,
    "export": export,
    "translate": translate,
}


if __name__ == "__main__":
    cli.run(main)
