"""Records the loss curves of two short trainings.

    python -m tests.training.loss_curves

writes `tests/data/loss_curves.json`, which belongs into the commit that changes what is
learnt: the review shows by how much. The public command alone is run, on a processor.
"""

import json
import tempfile
from importlib import metadata
from pathlib import Path

from tests.training import freeze_training

CURVES = freeze_training.FROZEN.parent / "loss_curves.json"
# Three rows of the training log, each of 50 updates; fewer updates than the warm-up's,
# so that no model is averaged and scored.
TRAIN_STEPS = 150
COLUMNS = ("step", "loss", "learning_rate", "token_share")
NAMES = ("without_dropout", "with_dropout")

WITHOUT_DROPOUT = "tiny,dropout=0,tokens_per_batch=512,eval_steps=0"
"""The quick start's set on the built-in corpus, smaller batches, nothing random."""

WITH_DROPOUT = freeze_training.HPARAMS.replace(
    "warmup_steps: 40", f"warmup_steps: {TRAIN_STEPS + 1}"
)
"""A very small post-norm model on made-up words, every kind of dropout."""


def curve(name: str, folder: Path) -> list[dict[str, float]]:
    """Trains in an empty folder.

    Args:
        name: one of `NAMES`.
        folder: gets data and model.

    Returns:
        Of every row of the training log `COLUMNS`: means over 50 updates, loss in nats
        per target token.
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
    """Writes `CURVES`."""
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
