"""Records the loss curves of two short trainings on the CPU.

    python -m tests.training.loss_curves

It writes `tests/data/loss_curves.json`. Include this file in a commit that changes
training, so that the review shows the difference.
"""

import json
import tempfile
from importlib import metadata
from pathlib import Path

from tests.training import freeze_training

CURVES = freeze_training.FROZEN.parent / "loss_curves.json"
# Two rows of the training log with 50 steps each. The warm-up is longer, so the model
# is not scored.
TRAIN_STEPS = 100
COLUMNS = ("step", "loss", "learning_rate", "token_share")
NAMES = ("without_dropout", "with_dropout")

WITHOUT_DROPOUT = "tiny,dropout=0,tokens_per_batch=512,eval_steps=0"
"""The quick start's set on the built-in corpus, with smaller batches, no dropout."""

WITH_DROPOUT = freeze_training.HPARAMS.replace("warmup_steps: 40", "warmup_steps: 151")
"""A very small post-norm model on invented words, with all kinds of dropout."""


def curve(name: str, folder: Path) -> list[dict[str, float]]:
    """Trains a model and returns its loss curve.

    Args:
        name: One of `NAMES`.
        folder: Empty folder for data and model.

    Returns:
        `COLUMNS` of each row of the training log: means over 50 steps, loss in nats per
        target token.
    """
    data, hparams = folder / "data", WITHOUT_DROPOUT
    if name == "with_dropout":
        freeze_training.write_text(data)
        (folder / "set.yaml").write_text(WITH_DROPOUT, encoding="utf-8")
        hparams = str(folder / "set.yaml")
    data.mkdir(exist_ok=True)
    freeze_training.train(data, folder / "model", hparams, TRAIN_STEPS)
    log = (folder / "model" / "training_log.tsv").read_text(encoding="utf-8")
    names, *rows = (line.split("\t") for line in log.splitlines())
    table = [dict(zip(names, map(float, row), strict=True)) for row in rows]
    return [{column: row[column] for column in COLUMNS} for row in table]


def record() -> None:
    """Trains both models and writes the curves to `CURVES`."""
    curves = {}
    for name in NAMES:
        with tempfile.TemporaryDirectory() as folder:
            curves[name] = curve(name, Path(folder))
    source = (
        f"TensorFlow {metadata.version('tensorflow')}, CPU: "
        "python -m tests.training.loss_curves"
    )
    text = json.dumps({"source": source, **curves}, indent=1) + "\n"
    CURVES.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    record()
