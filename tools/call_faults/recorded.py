"""Functions whose changes of files are recorded, and checks of a rebuilt folder.

A function reports each state that is saved by creating the file ``done-NUMBER``. A
check gets the number of the last one, or 0, and raises AssertionError.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from t2t_repro.data.manifest import Origin
from t2t_repro.system.atomic_file import write_text_atomically
from t2t_repro.system.errors import UserError
from t2t_repro.system.resumable_file import resumable_file

STEPS = (6, 8, 10)
_CHECKPOINTS = Path("model", "checkpoints")
_TEXTS = ("first", "second")
_WORDS = ("one", "two", "three", "four", "five", "six")
_PAIRS = [(first, second) for first in _WORDS for second in _WORDS]
_PER_SHARD = 12


def main(argv: Sequence[str] | None = None) -> None:
    """Saves one checkpoint, as the command of an operation of `fail_calls.py`."""
    _save(Path(), STEPS[:1])


def save_checkpoints(folder: Path = Path()) -> None:
    """Saves the checkpoints of `STEPS` as training does."""
    _save(folder, STEPS)


def check_checkpoints(folder: Path, done: int) -> None:
    """Resumes from the newest checkpoint, and saves another one."""
    step = _restore(folder)
    assert step >= done, f"step {done} is lost; the newest is {step}"
    _save(folder, [12])
    assert _restore(folder) == 12, "a checkpoint that was saved afterwards is lost"


def _save(folder: Path, steps: Sequence[int]) -> None:
    from t2t_repro.hparams import HParams
    from t2t_repro.training.checkpoint_writer import CheckpointWriter

    hparams = HParams(checkpoint_steps=2, keep_checkpoints=2, average_last=2)
    for step in steps:
        variables = _variables(step)
        CheckpointWriter(folder / _CHECKPOINTS, hparams, *variables, True).save(
            step, {}, wait=True
        )
        (folder / f"done-{step}").touch()


def _restore(folder: Path) -> int:
    """Returns the step of the newest whole checkpoint; 0 if none is found."""
    from t2t_repro.training.restoring import restore_newest

    variables = _variables(0)
    try:
        progress = restore_newest(folder / _CHECKPOINTS, *variables, log=lambda _: None)
    except UserError:
        return 0
    step = progress.step if progress else 0
    for actual, expected in zip(variables, _variables(step), strict=True):
        for name, variable in actual.items():
            same = (variable.numpy() == expected[name].numpy()).all()
            assert same, f"{name} has wrong values"
    return step


def _variables(step: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns weights and training state, with the values of a step."""
    import tensorflow as tf

    return {"w": tf.Variable([step + 0.25] * 300)}, {"m/w": tf.Variable([step + 0.5])}


@cache
def _tokenizer() -> Any:
    from t2t_repro.tokenizers.load import load_tokenizer
    from t2t_repro.tokenizers.vocabulary import build_vocabulary

    with TemporaryDirectory() as folder:
        path = Path(folder, "vocab.model")
        build_vocabulary("sentencepiece", map(" ".join, _PAIRS), 275, path)
        return load_tokenizer(path)


def encode(folder: Path = Path()) -> None:
    """Encodes a split in three shards."""
    from t2t_repro.data.shards import write_shards

    origin = Origin("files", "fingerprint", "pairs", "en", "de")
    where = folder / "train"
    write_shards(
        _PAIRS, _tokenizer(), where, "train", origin, pairs_per_shard=_PER_SHARD
    )
    (folder / "done-1").touch()


def check_shards(folder: Path, done: int) -> None:
    """Loads the shards, and encodes the split again if they are not whole."""
    from t2t_repro.data.shards import load_shards

    try:
        load_shards(folder / "train")
    except UserError:
        assert not done, "the split is lost"
        encode(folder)
    assert read_files(folder / "train") == _whole_split(), "the split is not whole"


@cache
def _whole_split() -> dict[str, bytes]:
    with TemporaryDirectory() as folder:
        encode(Path(folder))
        return read_files(Path(folder, "train"))


def read_files(folder: Path) -> dict[str, bytes]:
    """Returns the contents of a folder's files by path, without the reports."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith("done-")
    }


def replace_file(folder: Path = Path()) -> None:
    """Writes a file in a new folder, and replaces it."""
    for number, text in enumerate(_TEXTS, 1):
        write_text_atomically(folder / "file", text)
        (folder / f"done-{number}").touch()


def check_file(folder: Path, done: int) -> None:
    """Compares the file with the texts."""
    path = folder / "file"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    assert text in ("", *_TEXTS)[done:], f"{text!r} is left of {_TEXTS[:done]}"


def append_lines(folder: Path = Path()) -> None:
    """Appends lines to a file that can be resumed, and completes it."""
    with resumable_file(folder / "out.txt", {"input": "words"}) as output:
        for number in range(output.state.get("lines", 0), len(_WORDS)):
            output.append(f"{_WORDS[number]}\n", {"lines": number + 1})
    (folder / "done-1").touch()


def check_lines(folder: Path, done: int) -> None:
    """Resumes the file, unless it is complete."""
    path = folder / "out.txt"
    assert not done or path.exists(), "the file is lost"
    if not path.exists():
        append_lines(folder)
    assert path.read_text(encoding="utf-8") == "".join(f"{word}\n" for word in _WORDS)
