"""Freezes a small training: later revisions go on with it to the same losses.

For a new release, in an environment that has the release's dependencies:

    PYTHONPATH=CHECKOUT_OF_THE_RELEASE python tests/training/freeze_training.py NAME

writes `tests/data/continued_training/NAME`, NAME being the release's version or
revision: `data/` (text and encoded shards), `model/` (a model directory as a process
leaves it that is killed after update 20, a full state in it) and `losses.json` (of the
ten updates that follow, made by a process of its own).

Only the public command is run, so that the file works whatever the modules of the
release are called. Losses are read where a training keeps those of updates that it
has not reported yet, every digit of them: in the next checkpoint's description.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

FROZEN = Path(__file__).resolve().parents[1] / "data" / "continued_training"
LOSSES = "losses.json"

STOPPED_AT = 20
CHECKPOINT_STEPS = 10
COMPARED = range(STOPPED_AT + 1, STOPPED_AT + CHECKPOINT_STEPS + 1)
# One more: at its last update a training reports, and keeps no losses.
TRAIN_STEPS = COMPARED[-1] + 1

# One or two parts to a batch, eight batches to an epoch, every kind of dropout. The
# warm-up is longer than the training: a model so young is not translated with.
HPARAMS = f"""\
base: base
problem: files
tokenizer: wordpiece
vocab_size: 100
d_model: 8
d_ff: 16
num_heads: 2
num_layers: 2
dropout: 0.1
attention_dropout: 0.1
ffn_dropout: 0.1
label_smoothing: 0.1
norm: post
share_embeddings: true
learning_rate_scale: 0.3
warmup_steps: 40
tokens_per_batch: 320
max_tokens_per_device: 160
max_length: 40
checkpoint_steps: {CHECKPOINT_STEPS}
checkpoint_minutes: 0.0
eval_steps: 0
"""
SIZES = {"train": 90, "val": 8, "test": 4}


def train(data: Path, model: Path, hparams: str | Path, train_steps: int) -> str:
    """Runs `python -m t2t_repro.train` to its end, on a processor alone.

    There a batch is divided alike whatever the number of cores; on a GPU it is not
    divided, and dropout's masks are others.

    Args:
        data: the folder of the text.
        model: the model directory.
        hparams: the set, or its file.
        train_steps: the last update.

    Returns:
        What it said.

    Raises:
        RuntimeError: the command failed.
    """
    done = subprocess.run(
        [
            *(sys.executable, "-m", "t2t_repro.train", "--json"),
            *("--hparams", str(hparams), "--train_steps", str(train_steps)),
            *("--data_dir", str(data), "--model_dir", str(model)),
        ],
        # The current folder's own t2t_repro would come before PYTHONPATH's.
        cwd=data,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"},
        capture_output=True,
        encoding="utf-8",
    )
    if done.returncode:
        raise RuntimeError(f"the training failed:\n{done.stderr[-4000:]}")
    return done.stderr


def go_on(folder: Path) -> tuple[dict[str, Any], str]:
    """Goes on with a copy of a frozen training.

    Args:
        folder: the copy, which is changed: it holds `data` and `model`.

    Returns:
        What `losses.json` has beside its source: `steps`, and of each of them `loss`
        (nats), `gradient_norm`, `learning_rate` and `target_tokens`; `logged`, the
        row of the training log, whose loss, share and norm are means over all
        updates since the first. And what the command said.
    """
    model = folder / "model"
    said = train(folder / "data", model, model / "hparams.yaml", TRAIN_STEPS)
    kept = model / "checkpoints" / f"step-{COMPARED[-1]:08d}" / "checkpoint.json"
    # Loss, tokens, share of tokens, norm and rate of every update so far.
    rows = json.loads(kept.read_text(encoding="utf-8"))["unreported"]
    assert len(rows) == COMPARED[-1]
    loss, tokens, _, norm, rate = zip(*rows[STOPPED_AT:], strict=True)
    names, values = (
        line.split("\t")
        for line in (model / "training_log.tsv").read_text("utf-8").splitlines()
    )
    logged = dict(zip(names, map(float, values), strict=True))
    del logged["target_tokens_per_second"]
    found = {
        "steps": list(COMPARED),
        "loss": loss,
        "gradient_norm": norm,
        "learning_rate": rate,
        "target_tokens": tokens,
        "logged": logged,
    }
    return found, said


def freeze(name: str, parent: Path = FROZEN) -> Path:
    """Makes a frozen training with the revision that `import t2t_repro` finds.

    Args:
        name: what the folder is called.
        parent: where it goes.

    Returns:
        The folder, which is new.

    Raises:
        FileExistsError: there is one of that name.
    """
    folder = parent / name
    with tempfile.TemporaryDirectory() as temporary:
        made = Path(temporary) / name
        write_text(made / "data")
        hparams = made / "set.yaml"
        hparams.write_text(HPARAMS, encoding="utf-8")
        # A full state is kept of the newest two checkpoints: updates 20 and 21.
        train(made / "data", made / "model", hparams, STOPPED_AT + 1)
        hparams.unlink()
        leave_as_killed(made / "model")
        shutil.copytree(made, folder)
        found, _ = go_on(made)
    source = (
        f"revision {name}, TensorFlow {metadata.version('tensorflow')}, CPU: "
        f"python tests/training/freeze_training.py {name}"
    )
    text = json.dumps({"source": source, **found}, indent=1) + "\n"
    (folder / LOSSES).write_text(text, encoding="utf-8")
    return folder


def leave_as_killed(model: Path) -> None:
    """Leaves of a model directory what one has that was killed after update 20.

    And that was moved: nothing in it tells of the machine that made it.
    """
    for path in (model / "checkpoints").iterdir():
        if path.name != f"step-{STOPPED_AT:08d}":
            shutil.rmtree(path)
    for name in ("averaged", "tensorboard"):
        shutil.rmtree(model / name)
    for name in ("training_log.tsv", "validation_log.tsv"):
        (model / name).unlink()
    path = model / "model.json"
    meta = json.loads(path.read_text(encoding="utf-8"))
    text = json.dumps({**meta, "data_dir": "data"}, indent=2) + "\n"
    path.write_text(text, encoding="utf-8")


def write_text(folder: Path) -> None:
    """Writes `train.en`, `train.de` and so on: made-up words for made-up numbers.

    Targets say the numbers of the source, each in another way, from the last to the
    first.
    """
    folder.mkdir(parents=True)
    first = 0
    for split, size in SIZES.items():
        rows = [numbers(row) for row in range(first, first + size)]
        first += size
        sources = [" ".join(spelled(n, "kmpt", "aiou") for n in row) for row in rows]
        targets = [" ".join(spelled(n, "bdgz", "eioy") for n in row) for row in rows]
        targets = [" ".join(reversed(line.split(" "))) for line in targets]
        for lang, lines in (("en", sources), ("de", targets)):
            text = "".join(f"{line}\n" for line in lines)
            (folder / f"{split}.{lang}").write_text(text, encoding="utf-8")


def numbers(row: int) -> list[int]:
    """Returns one to six numbers below 256, other ones for every row."""
    return [(row * row + 37 * row * place + 11) % 251 for place in range(1 + row % 6)]


def spelled(number: int, consonants: str, vowels: str) -> str:
    """Spells a number to the base of 16 as syllables, the last digit last."""
    digits = [number] if number < 16 else [number // 16, number % 16]
    return "".join(consonants[digit // 4] + vowels[digit % 4] for digit in digits)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tests/training/freeze_training.py NAME")
    print(freeze(sys.argv[1]))
