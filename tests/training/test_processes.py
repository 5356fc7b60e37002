"""Tests that several processes with different micro-batches train like one process."""

import io
import json
from pathlib import Path

import numpy as np
import pytest

from t2t_repro.batches import pipeline
from t2t_repro.data.encoded_pairs import EncodedPairs
from t2t_repro.training import strategy
from t2t_repro.training.loop import TrainingLoop
from t2t_repro.training.monitor import Monitor
from t2t_repro.training.procedure import make_batching_config
from t2t_repro.training.validation import ValidationLoss
from tests import forks
from tests.training import toy
from tests.training.test_strategy import worker_environments

# With dropout: the masks of a micro-batch do not depend on its process.
HPARAMS = toy.HPARAMS.replace(
    tokens_per_batch=256, max_tokens_per_device=16, train_steps=5, batching="sorted"
)


def pairs():
    """Returns sixty pairs with 2 to 8 tokens per side, including EOS."""
    lengths = np.random.default_rng(1).integers(2, 9, [60, 2], np.int32)
    ids = np.random.default_rng(2).integers(2, toy.VOCAB_SIZE, lengths.sum(), np.int32)
    ids[np.cumsum(lengths.ravel()) - 1] = 1
    return EncodedPairs([ids], [lengths])


def train(path):
    """Trains five steps; writes their results, the validation loss and the weights."""
    path = Path(path)
    chosen = strategy.choose("auto")
    with chosen.scope():
        model = toy.model(HPARAMS)
    chief = strategy.is_chief(chosen)
    loop = TrainingLoop(model, HPARAMS, chosen, path.parent / "checkpoints", chief)
    monitor = Monitor(None, 100, 0, io.StringIO())
    config, gathered = make_batching_config(HPARAMS), []

    def batches(step):
        own = loop.workers.own_microbatches
        for batch in pipeline.batches(pairs(), config, 1, step, own):
            gathered.append(
                [int(np.count_nonzero(batch["inputs"])), len(batch["inputs"])]
            )
            yield batch

    def validate(step):
        own = pipeline.eval_batches(
            pairs(), config, loop.workers.number, loop.workers.count
        )
        report["validation"] = ValidationLoss(model, loop.workers)(own)

    report = {"gathered": gathered}
    assert loop.run(batches, monitor, validate)
    report["results"] = monitor.unreported()
    report["weights"] = {n: w.numpy().tolist() for n, w in loop.weights.items()}
    path.write_text(json.dumps(report), encoding="utf-8")
    loop.workers.wait()


@pytest.mark.parametrize(
    "workers",
    [
        pytest.param(2, marks=pytest.mark.medium),
        pytest.param(8, marks=pytest.mark.slow),
    ],
)
def test_several_processes_train_like_one(tmp_path, workers):
    paths = [(str(tmp_path / f"{index}.json"),) for index in range(workers)]
    running = forks.Forks(train, *paths, environments=worker_environments(workers))
    train(tmp_path / "one.json")
    for result in running.finish():
        assert result.status == 0, result.err[-3000:]
    one = json.loads((tmp_path / "one.json").read_text())
    assert len(one["results"]) == 5
    for index in range(workers):
        report = json.loads((tmp_path / f"{index}.json").read_text())
        for key in ("results", "validation"):
            np.testing.assert_allclose(report[key], one[key], rtol=1e-5, err_msg=key)
        for name, weights in one["weights"].items():
            np.testing.assert_allclose(
                report["weights"][name], weights, atol=3e-5, err_msg=name
            )
        # Each worker gathers only its own micro-batches, of about twenty in all.
        for (own, total), (gathered, expected) in zip(
            report["gathered"], one["gathered"], strict=True
        ):
            assert total == expected == gathered > workers
            assert own in (expected // workers, expected // workers + 1)
