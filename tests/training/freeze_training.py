"""Freezes a small training, which later revisions must resume with the same losses.

Run it for a new release in an environment with the release's dependencies:

    PYTHONPATH=CHECKOUT_OF_THE_RELEASE python tests/training/freeze_training.py NAME

It writes `tests/data/continued_training/NAME`, where NAME is the version or revision:
`data/` (text and encoded shards), `model/` (the model directory of a process killed
after step 20) and `losses.json` (losses of the next ten steps, from a second process).

It runs only the public command, so it works with any module layout. It reads the losses
in full precision from the next checkpoint, which contains those since the last report.
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
# One step more, because the report of the last step removes the losses from the
# checkpoint.
TRAIN_STEPS = COMPARED[-1] + 1

# One or two micro-batches per batch, eight batches per epoch, all kinds of dropout. The
# warm-up is longer than the training, so no text is translated.
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
    """Runs `python -m t2t_repro.train` on the CPU.

    On a CPU, the division of a batch does not depend on the number of cores. A GPU does
    not divide it, which changes dropout's masks.

    Args:
        data: Folder of the text.
        model: Model directory.
        hparams: Name or file of the hyper-parameter set.
        train_steps: Last step.

    Returns:
        The command's standard error.

    Raises:
        RuntimeError: The command failed.
    """
    result = subprocess.run(
        [
            *(sys.executable, "-m", "t2t_repro.train", "--json"),
            *("--hparams", str(hparams), "--train_steps", str(train_steps)),
            *("--data_dir", str(data), "--model_dir", str(model)),
        ],
        # A t2t_repro in the current folder would take precedence over PYTHONPATH.
        cwd=data,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"},
        capture_output=True,
        encoding="utf-8",
    )
    if result.returncode:
        raise RuntimeError(f"the training failed:\n{result.stderr[-4000:]}")
    return result.stderr


def resume(folder: Path) -> tuple[dict[str, Any], str]:
    """Resumes a copy of a frozen training.

    Args:
        folder: Copy with `data` and `model`; it is modified.

    Returns:
        The values of `losses.json`: `steps`, and for each step `loss` (nats),
        `gradient_norm`, `learning_rate` and `target_tokens`; `logged`, the row of the
        training log, with means over all steps since the first. Second, the command's
        standard error.
    """
    model = folder / "model"
    output = train(folder / "data", model, model / "hparams.yaml", TRAIN_STEPS)
    meta = model / "checkpoints" / f"step-{COMPARED[-1]:08d}" / "checkpoint.json"
    # Loss, tokens, token ratio, norm and rate of each step so far.
    rows = json.loads(meta.read_text(encoding="utf-8"))["unreported"]
    assert len(rows) == COMPARED[-1]
    loss, tokens, _, norm, rate = zip(*rows[STOPPED_AT:], strict=True)
    names, values = (
        line.split("\t")
        for line in (model / "training_log.tsv").read_text("utf-8").splitlines()
    )
    logged = dict(zip(names, map(float, values), strict=True))
    del logged["target_tokens_per_second"]
    losses = {
        "steps": list(COMPARED),
        "loss": loss,
        "gradient_norm": norm,
        "learning_rate": rate,
        "target_tokens": tokens,
        "logged": logged,
    }
    return losses, output


def freeze(name: str, parent: Path = FROZEN) -> Path:
    """Creates a frozen training with the importable revision of t2t_repro.

    Args:
        name: Name of the new folder.
        parent: Parent folder.

    Returns:
        The new folder.

    Raises:
        FileExistsError: The folder exists.
    """
    folder = parent / name
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary) / name
        write_text(work / "data")
        hparams = work / "set.yaml"
        hparams.write_text(HPARAMS, encoding="utf-8")
        # The newest two checkpoints, of steps 20 and 21, have optimizer state.
        train(work / "data", work / "model", hparams, STOPPED_AT + 1)
        hparams.unlink()
        remove_later_files(work / "model")
        shutil.copytree(work, folder)
        losses, _ = resume(work)
    source = (
        f"revision {name}, TensorFlow {metadata.version('tensorflow')}, CPU: "
        f"python tests/training/freeze_training.py {name}"
    )
    text = json.dumps({"source": source, **losses}, indent=1) + "\n"
    (folder / LOSSES).write_text(text, encoding="utf-8")
    return folder


def remove_later_files(model: Path) -> None:
    """Reduces a model directory to that of a process killed after step 20.

    Also removes all references to the machine.
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
    """Writes a synthetic corpus, `train.en`, `train.de` and so on.

    Sentences are numbers spelled with invented syllables. A target is the source's
    numbers with other syllables in reverse order.
    """
    folder.mkdir(parents=True)
    first = 0
    for split, size in SIZES.items():
        rows = [numbers(row) for row in range(first, first + size)]
        first += size
        sources = [" ".join(spell(n, "kmpt", "aiou") for n in row) for row in rows]
        targets = [" ".join(spell(n, "bdgz", "eioy") for n in row) for row in rows]
        targets = [" ".join(reversed(line.split(" "))) for line in targets]
        for lang, lines in (("en", sources), ("de", targets)):
            text = "".join(f"{line}\n" for line in lines)
            (folder / f"{split}.{lang}").write_text(text, encoding="utf-8")


def numbers(row: int) -> list[int]:
    """Returns one to six numbers below 256, different for each row."""
    return [(row * row + 37 * row * place + 11) % 251 for place in range(1 + row % 6)]


def spell(number: int, consonants: str, vowels: str) -> str:
    """Spells a number in base 16, with one syllable per digit."""
    digits = [number] if number < 16 else [number // 16, number % 16]
    return "".join(consonants[digit // 4] + vowels[digit % 4] for digit in digits)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tests/training/freeze_training.py NAME")
    print(freeze(sys.argv[1]))
