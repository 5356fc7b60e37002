"""Table of mistakes (bad_inputs.txt), and the files and changes that it names."""

from __future__ import annotations

import gzip
import json
import os
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

TABLE = Path(__file__).with_suffix(".txt")
FLAGS = {
    "files": "--problem files --data_dir {data} --hparams {set}",
    "clean": "--source_lang en --target_lang de --output_dir {odd}/new --workers 1",
    "train": "--data_dir {data} --model_dir {model} --hparams {set}",
    "import": "--checkpoint {odd}/model.ckpt-1 --vocab_file {odd}/junk.subwords "
    "--model_dir {odd}/imported",
}


@dataclass(frozen=True)
class World:
    """Folders of a test.

    Attributes:
        root: Folder with `data`, `model` and `tiny_files.yaml` of a trained model, and
            invalid files in `odd`.
    """

    root: Path

    @property
    def data(self) -> Path:
        """Data directory: text files and encoded shards."""
        return self.root / "data"

    @property
    def model(self) -> Path:
        """Model directory."""
        return self.root / "model"

    @property
    def odd(self) -> Path:
        """Folder of invalid files."""
        return self.root / "odd"

    @property
    def here(self) -> Path:
        """Working directory of the commands, which must stay empty."""
        return self.root / "here"

    def filled(self, text: str) -> str:
        """Returns the text with the names of folders replaced by their paths."""
        names = {"data": self.data, "model": self.model, "odd": self.odd}
        return text.format(set=self.root / "tiny_files.yaml", **names)


@dataclass(frozen=True)
class Bad:
    """A row of the table.

    Attributes:
        command: Name of the command.
        flags: Flags, with placeholders in braces.
        words: Text that the error message must contain.
        change: Name of a change in `CHANGES`, or "".
    """

    command: str
    flags: str
    words: str
    change: str = ""

    def arguments(self, world: World) -> list[str]:
        """Returns the flags with all placeholders replaced."""
        text = self.flags
        for name, flags in FLAGS.items():
            text = text.replace(f"{{{name}}}", flags)
        return shlex.split(world.filled(text))

    def stdin(self, world: World) -> bytes:
        """Returns the contents of standard input."""
        if self.change == "standard input is latin":
            return (world.odd / "latin.en").read_bytes()
        return b"one\n"

    def apply_change(self, world: World) -> None:
        """Applies the change to the files."""
        if self.change and self.change != "standard input is latin":
            CHANGES[self.change](world)


def table() -> list[Bad]:
    """Returns the rows of the table."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    rows = (line for line in lines if line and not line.startswith("#"))
    return [Bad(*(part.strip() for part in row.split(" | "))) for row in rows]


def write_odd_files(folder: Path) -> None:
    """Writes invalid files, and valid ones to compare with them."""
    texts = {
        "good.en": b"one two\nthree\n",
        "good.de": b"eins zwei\ndrei\n",
        "longer.de": b"eins zwei\ndrei\nvier\n",
        "blank.de": b"\n \n",
        "latin.en": b"one\nf\xfcnf\n",
        "nul.en": b"o\0n\0e\0\n",
        "empty.en": b"",
        "fake.en.gz": b"one\n",
        "cut.en.gz": gzip.compress(b"one\n" * 1000)[:-20],
        "pointer.en": b"version https://git-lfs.github.com/spec/v1\nsize 12\n",
        "pointer.subwords": b"version https://git-lfs.github.com/spec/v1\nsize 12\n",
        "copies.yaml": b"copies: false\n",
        "letters.yaml": b"letters: 2\n",
        "junk.model": b"no vocabulary",
        "junk.subwords": b"'the_'\n",
        "junk.sides": b"{}",
        "python.yaml": b"d_model: !!python/object/apply:os.system ['touch x']\n",
        "alias.yaml": b"seed: &one 1\nd_model: *one\n",
        "list.yaml": b"- d_model\n",
        "twice.yaml": b"seed: 1\nseed: 2\n",
        "deep.yaml": b"[" * 5000,
        "date.yaml": b"seed: 2001-99-99\n",
        "latin.yaml": b"norm: f\xfcr\n",
        "good.trees": b"(TOP (NP (NN tea)))\n" * 2,
        "open.trees": b"(TOP (NP (NN tea)))\n(TOP (NP (NN tea))\n",
        "half.json": b"{",
        "list.json": b"[]",
        "cut.srt": b"1\n00:00:01,000 --> 00:00",
        "entity.tmx": b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
    }
    folder.mkdir()
    for name, contents in texts.items():
        (folder / name).write_bytes(contents)
    for name in ("folder.en", "folder.yaml", "kept"):
        (folder / name).mkdir()
    (folder / "kept" / "notes.txt").write_text("mine")
    (folder / "french").mkdir()
    for name in ("train.en", "train.fr"):
        (folder / "french" / name).write_bytes(b"one\n")
    (folder / "parsing").mkdir()
    for split, name in (("train", "open"), ("val", "good"), ("test", "good")):
        (folder / f"parsing/{split}.trees").write_bytes(texts[f"{name}.trees"])
    np.savez(folder / "kept" / "array.npz", x=np.zeros(3))
    for name in ("version", "served/3"):
        (folder / name).mkdir(parents=True)
        (folder / name / "saved_model.pb").write_bytes(b"junk")


Change = Callable[[World], object]


def _text(name: str, change: Callable[[bytes], bytes]) -> Change:
    """Returns a change that edits a text file and removes the encoded shards."""

    def apply(world: World) -> None:
        path = world.data / name
        path.write_bytes(change(path.read_bytes()))
        shutil.rmtree(world.data / "encoded")

    return apply


def _second_line(name: str, line: bytes) -> Change:
    def changed(text: bytes) -> bytes:
        lines = text.split(b"\n")
        return b"\n".join([lines[0], line, *lines[2:]])

    return _text(name, changed)


def _blank_train(world: World) -> None:
    _text("train.en", lambda text: b"\n" * 60)(world)
    (world.data / "train.de").write_bytes(b" \r\n" * 60)


def _directory(world: World) -> None:
    _text("train.en", lambda text: text)(world)
    (world.data / "train.en").unlink()
    (world.data / "train.en").mkdir()


def _pipe(world: World) -> None:
    _text("train.en", lambda text: text)(world)
    (world.data / "train.en").unlink()
    os.mkfifo(world.data / "train.en")


def _cut_gz(world: World) -> None:
    _text("train.de", lambda text: text)(world)
    path = world.data / "train.de"
    (world.data / "train.de.gz").write_bytes(gzip.compress(path.read_bytes())[:-9])
    path.unlink()


def _removed(name: str) -> Change:
    def apply(world: World) -> None:
        path = world.root / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return apply


def _altered(name: str) -> Change:
    """Returns a change that flips a bit in the middle of a file."""

    def apply(world: World) -> None:
        path = world.root / name
        contents = bytearray(path.read_bytes())
        contents[len(contents) // 2] ^= 1
        path.write_bytes(contents)

    return apply


def _replaced(name: str, text: str) -> Change:
    return lambda world: (world.root / name).write_text(text, encoding="utf-8")


def _outward_link(world: World) -> None:
    """Replaces the log with a link to a file outside of the model directory."""
    log = world.model / "training_log.tsv"
    log.unlink()
    log.symlink_to(world.odd / "kept" / "notes.txt")


def _moved_data(world: World) -> None:
    path = world.model / "model.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(values | {"data_dir": str(world.odd / "absent")}))


def _no_checkpoint_is_whole(world: World) -> None:
    for path in world.model.glob("checkpoints/*/optimizer.index"):
        path.unlink()


CHANGES: dict[str, Change] = {
    "train.de is latin": _second_line("train.de", b"zw\xff"),
    "test.de is latin": _second_line("test.de", b"zw\xff"),
    "train.en has a NUL": _second_line("train.en", b"on\0e"),
    "train.en is longer": _text("train.en", lambda text: text + b"one\n"),
    "train.en is a directory": _directory,
    "train.en is another text, not encoded": _second_line("train.en", b"eleven"),
    "train.en is a pipe": _pipe,
    "train.de.gz is cut": _cut_gz,
    "train is blank": _blank_train,
    "val.de is twice": lambda world: shutil.copy(
        world.data / "val.de", world.data / "val.de.gz"
    ),
    "val.de is missing": _removed("data/val.de"),
    "val is missing": lambda world: [
        _removed(f"data/val.{lang}")(world) for lang in ("en", "de")
    ],
    "val.en is empty": _text("val.en", lambda text: b""),
    "test.de is blank": _text("test.de", lambda text: b"\n" * 6),
    "test.de is missing": _removed("data/test.de"),
    "model.json is damaged": _replaced("model/model.json", "{"),
    "hparams.yaml is damaged": _replaced("model/hparams.yaml", "["),
    "the bounds are junk": _replaced("model/int8_bounds.json", "[]"),
    "a link leads out": _outward_link,
    "no checkpoint is whole": _no_checkpoint_is_whole,
    "step 4 is altered": _altered(
        "model/checkpoints/step-00000004/weights.data-00000-of-00001"
    ),
    "step 4 lacks its index": _removed("model/checkpoints/step-00000004/weights.index"),
    "checkpoints are missing": _removed("model/checkpoints"),
    "the average is altered": _altered("model/averaged/weights.data-00000-of-00001"),
    "the average's description is altered": _altered("model/averaged/checkpoint.json"),
    "checkpoints are missing, no average": lambda world: [
        _removed(f"model/{name}")(world) for name in ("checkpoints", "averaged")
    ],
    "averaged is missing": _removed("model/averaged"),
    "best_bleu is missing": _removed("model/best_bleu"),
    "the data were moved": _moved_data,
    "the vocabulary is another": _altered("model/vocab.model"),
}
