"""A corpus and models that are small enough to be trained in seconds."""

from __future__ import annotations

import itertools
import json
import random
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tests import run_command

if TYPE_CHECKING:
    from t2t_repro.models.transformer import Transformer
    from t2t_repro.tokenizers.tokenizer import Tokenizer

NUMBERS = (
    ("one", "eins"),
    ("two", "zwei"),
    ("three", "drei"),
    ("four", "vier"),
    ("five", "fünf"),
    ("six", "sechs"),
    ("seven", "sieben"),
    ("eight", "acht"),
    ("nine", "neun"),
    ("ten", "zehn"),
)
VOCAB_SIZE = 300
SIZES = {"train": 60, "val": 5, "test": 6}

HPARAMS = """\
base: base
problem: files
vocab_size: 300
d_model: 16
d_ff: 32
num_heads: 2
num_layers: 1
warmup_steps: 2
learning_rate_scale: 0.05
tokens_per_batch: 256
max_length: 32
train_steps: 4
checkpoint_steps: 2
checkpoint_minutes: 0.0
average_last: 2
eval_steps: 0
beam_size: 2
decode_extra_length: 2
"""


def pairs(split: str) -> list[tuple[str, str]]:
    """Returns pairs of two to four number words, translated word by word."""
    generator = random.Random(split)
    rows = [
        generator.choices(NUMBERS, k=generator.randint(2, 4))
        for _ in range(SIZES[split])
    ]
    return [
        (" ".join(en for en, _ in row), " ".join(de for _, de in row)) for row in rows
    ]


def tokenizer(folder: Path) -> Tokenizer:
    """Builds the vocabulary of the corpus, of `VOCAB_SIZE` subwords, in a folder."""
    from t2t_repro.tokenizers.load import load_tokenizer
    from t2t_repro.tokenizers.vocabulary import build_vocabulary

    path = folder / "vocab.model"
    lines = itertools.chain.from_iterable(pairs("train"))
    build_vocabulary("sentencepiece", lines, VOCAB_SIZE, path)
    return load_tokenizer(path)


def random_model(
    vocab_size: int = VOCAB_SIZE,
    spread: float = 0.3,
    target_vocab_size: int | None = None,
    **settings: Any,
) -> Transformer:
    """Builds a model with random weights, which are the same in every call.

    The weights, including norms and biases, are large, so that different hypotheses
    have different scores.

    Args:
        vocab_size: Number of tokens in the (source) vocabulary, V.
        spread: Standard deviation of the noise that is added to the initial weights.
        target_vocab_size: V of the target vocabulary; None for a shared vocabulary.
        **settings: Hyper-parameters that replace the defaults.
    """
    from t2t_repro.hparams import HParams
    from t2t_repro.runs.model_dir import build_model

    sizes = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1, "seed": 1}
    hparams = HParams(**(sizes | settings))
    model = build_model(hparams, vocab_size, target_vocab_size)
    generator = np.random.default_rng(hparams.seed)
    for variable in model.trainable_variables:
        variable.assign(variable + generator.normal(0, spread, variable.shape))
    return model


def write_corpus(folder: Path) -> Path:
    """Writes `train.en`, `train.de` and the other splits; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for split in SIZES:
        for side, lang in enumerate(("en", "de")):
            lines = [f"{pair[side]}\n" for pair in pairs(split)]
            (folder / f"{split}.{lang}").write_text("".join(lines), encoding="utf-8")
    return folder


def write_hparams(folder: Path) -> Path:
    """Writes the set `tiny_files.yaml`; returns its path."""
    path = folder / "tiny_files.yaml"
    path.write_text(HPARAMS, encoding="utf-8")
    return path


@dataclass(frozen=True)
class Trained:
    """A model trained with the train command.

    Attributes:
        folder: Folder of the data, the hyper-parameters and the model.
        done: Result of the command.
    """

    folder: Path
    done: run_command.Done

    @property
    def data_dir(self) -> Path:
        """Folder of the text files."""
        return self.folder / "data"

    @property
    def model_dir(self) -> Path:
        """Model directory."""
        return self.folder / "model"

    @property
    def hparams(self) -> Path:
        """Path of the hyper-parameter set."""
        return self.folder / "tiny_files.yaml"

    @property
    def result(self) -> dict[str, Any]:
        """Output of the command with `--json`."""
        values = json.loads(self.done.out)
        assert isinstance(values, dict)
        return values

    def arguments(self, overrides: str = "") -> list[str]:
        """Returns the flags of the train command, with overrides."""
        spec = f"{self.hparams},{overrides}" if overrides else str(self.hparams)
        folders = ["--data_dir", str(self.data_dir), "--model_dir", str(self.model_dir)]
        return ["--hparams", spec, *folders, "--json"]

    def copy_to(self, folder: Path) -> Trained:
        """Copies the data, the hyper-parameters and the model."""
        shutil.copytree(self.folder, folder)
        return Trained(folder, self.done)


def train(folder: Path) -> Trained:
    """Trains the tiny model with the train command, in this process."""
    write_corpus(folder / "data")
    write_hparams(folder)
    arguments = Trained(folder, run_command.Done(0, "", "")).arguments()
    result = run_command.run("train", *arguments)
    assert result.status == 0, result.err
    return Trained(folder, result)
