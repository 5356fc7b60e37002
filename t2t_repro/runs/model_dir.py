"""A model directory: it describes itself, so later commands need only its path.

``hparams.yaml`` (the resolved set), ``model.json`` (problem, languages, data), the
vocabulary, ``result.json``, ``checkpoints/``, ``averaged/``, ``best_bleu/``,
``training_log.tsv``, ``validation_log.tsv``, ``skipped_pairs.tsv``, ``tensorboard/``;
during training, ``training.lock``.
"""

import json
import os
import random
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

from t2t_repro import hparams as hparam_sets
from t2t_repro import problems
from t2t_repro.hparams import HParams
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables
from t2t_repro.problems.problem import Problem
from t2t_repro.runs.checkpoint_rotation import ranked
from t2t_repro.runs.checkpoints import Checkpoint, list_checkpoints, open_checkpoint
from t2t_repro.runs.run_metadata import (
    META_FILE,
    RunMetadata,
    changed_hparams,
    changed_metadata,
    refuse,
    require_model,
)
from t2t_repro.system.atomic_file import write_text_atomically
from t2t_repro.system.errors import UserError
from t2t_repro.system.locks import SIGN, exclusive_lock, heartbeat_lock, this_machine
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.tokenizer import Tokenizer

HPARAMS_FILE = "hparams.yaml"
RESULT_FILE = "result.json"
CHECKPOINT_NAMES = ("best", "latest", "averaged", "best_bleu")
"""What `ModelDir.checkpoint` knows by name; a folder is written otherwise, ./latest."""
# Beginnings of the files that are written under another name first.
_WRITTEN_ASIDE = (
    *(HPARAMS_FILE, META_FILE, RESULT_FILE, "vocab"),
    *("training_log.tsv", "validation_log.tsv", "skipped_pairs.tsv", SIGN),
)


class ModelDir:
    """A directory that holds a model; it need not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def checkpoint_dir(self) -> Path:
        """The folder of the training's checkpoints."""
        return self.path / "checkpoints"

    @property
    def averaged_dir(self) -> Path:
        """The averaged checkpoint."""
        return self.path / "averaged"

    @property
    def best_dir(self) -> Path:
        """The folder of the checkpoints of the best validation BLEU, or F1 of trees."""
        return self.path / "best_bleu"

    @property
    def result_file(self) -> Path:
        """Where the training writes its score."""
        return self.path / RESULT_FILE

    def exists(self) -> bool:
        """Whether a model was begun here."""
        return (self.path / META_FILE).exists()

    def hparams(self) -> HParams:
        """Returns the resolved hyper-parameters."""
        require_model(self.path)
        return hparam_sets.read(self.path / HPARAMS_FILE)

    def provenance(self) -> RunMetadata:
        """Returns what the model learns from; raises UserError if damaged."""
        require_model(self.path)
        path = self.path / META_FILE
        try:
            found = RunMetadata(**json.loads(path.read_text(encoding="utf-8")))
            if not found.is_well_formed():
                raise TypeError
        except (ValueError, TypeError, RecursionError):
            raise UserError(f"{path} is damaged; restore it from a copy") from None
        return found

    def problem(self) -> Problem:
        """Returns the problem the model learns from; raises UserError if unknown."""
        found = self.provenance()
        if found.problem is None:
            raise UserError(
                f"--model_dir {self.path} was imported, so its data are unknown; "
                "translate and score files, or train it on (python -m t2t_repro.train "
                f"--hparams {self.path / HPARAMS_FILE} --model_dir {self.path} "
                "--problem NAME), which makes them known"
            )
        return problems.create(
            found.problem, found.data_dir, found.source_lang, found.target_lang
        )

    def tokenizer(self) -> Tokenizer:
        """Returns the vocabulary; raises UserError if the model had another."""
        tokenizer = load_tokenizer(self.path)
        if tokenizer.fingerprint != self.provenance().vocabulary_fingerprint:
            raise UserError(
                f"{self.path / tokenizer.file_name} is not the vocabulary that this "
                "model was made with; restore it from a copy"
            )
        return tokenizer

    def given_vocabulary(self, accepted: Collection[str] = ()) -> Path | None:
        """Returns the vocabulary file that a training must go on with.

        None: no model was begun, or the vocabulary is built from the data. With other
        data among the `accepted` changes the weights still need the old vocabulary.
        """
        if not self.exists():
            return None
        kept = self.provenance().vocabulary_given or {"data", "problem"} & {*accepted}
        return self.path / self.tokenizer().file_name if kept else None

    def make(self) -> None:
        """Makes the directory if it is not there."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"--model_dir {self.path}: {error.strerror}") from None

    def begin(
        self,
        hparams: HParams,
        provenance: RunMetadata,
        tokenizer: Tokenizer,
        accepted: Collection[str] = (),
    ) -> None:
        """Writes what describes a model, after `check`; the vocabulary is copied.

        Raises UserError if links lead out of the directory or it cannot be written.
        """
        self.check(hparams, provenance, accepted)
        self._refuse_links()
        self.make()
        tokenizer.save(self.path)
        hparams.save(self.path / HPARAMS_FILE)
        # Last: its presence says that the rest is there.
        text = json.dumps(asdict(provenance), indent=2) + "\n"
        write_text_atomically(self.path / META_FILE, text)

    @contextmanager
    def locked(self, log: Callable[[str], object] = print) -> Iterator[None]:
        """Holds it for one training, else UserError; clears what a killed one left.

        Where one was killed on another machine, it takes half a minute to know, and
        `log` is told.
        """

        def taken() -> NoReturn:
            raise UserError(
                f"--model_dir {self.path}: another process trains in it; wait for it, "
                "or name another directory"
            )

        with ExitStack() as stack:
            has_locks = stack.enter_context(exclusive_lock(self.path, taken))
            ours = this_machine() if has_locks else f"{this_machine()} {os.getpid()}"
            stack.enter_context(heartbeat_lock(self.path, ours, log, taken))
            for name in _WRITTEN_ASIDE:
                for left in self.path.glob(f".{name}.*"):
                    left.unlink()
            yield

    def check(
        self, hparams: HParams, provenance: RunMetadata, accepted: Collection[str] = ()
    ) -> None:
        """Raises UserError that names what makes another model than the one begun.

        What is unknown is not compared; of an imported model only what decides its
        function.
        """
        if not self.exists():
            return
        before = self.provenance()
        changes = changed_hparams(self.hparams(), hparams, before.is_unknown)
        refuse(self.path, changes, accepted)
        refuse(self.path, changed_metadata(before, provenance), accepted)

    def checkpoint(self, spec: str = "best") -> Checkpoint:
        """Returns a checkpoint by its folder or name; raises UserError without one.

        "latest", "averaged", "best_bleu" (the best validation BLEU, or F1 of trees), or
        "best": the averaged one where there is one, else the latest.
        """
        require_model(self.path)
        if spec == "best":
            spec = "averaged" if self.averaged_dir.is_dir() else "latest"
        if spec == "averaged":
            if self.averaged_dir.is_dir():
                return open_checkpoint(self.averaged_dir)
            raise UserError(
                f"{self.path} has no averaged checkpoint yet; run "
                f"python -m t2t_repro.average --model_dir {self.path}"
            )
        if spec == "best_bleu":
            if best := ranked(self.best_dir):
                return best[0]
            raise UserError(
                f"{self.path} has no checkpoint of a best validation BLEU yet; "
                "train it past its warm-up, with keep_best_checkpoints of at least 1"
            )
        if spec == "latest":
            if found := list_checkpoints(self.checkpoint_dir):
                return found[-1]
            raise UserError(
                f"{self.path} has no checkpoint yet; train it with "
                "python -m t2t_repro.train"
            )
        if Path(spec).is_dir():
            return open_checkpoint(Path(spec))
        raise UserError(
            f"--checkpoint {spec}: no such folder; name one, or say "
            "averaged, latest, best or best_bleu"
        )

    def model(self, checkpoint: Checkpoint) -> Transformer:
        """Builds the model with a checkpoint's weights; UserError unless they fit."""
        tokenizer = self.tokenizer()
        sizes = tokenizer.vocab_size, tokenizer.target_vocab_size
        model = build_model(self.hparams(), *sizes)
        with checkpoint.held():
            checkpoint.tensors().assign_to(named_variables(model))
        return model

    def _refuse_links(self) -> None:
        """Refuses a directory, packed by somebody else, that leads out of itself."""
        root = self.path.resolve()
        for path in (*self.path.glob("*"), *self.path.glob("*/*")):
            if path.is_symlink() and root not in path.resolve().parents:
                raise UserError(
                    f"{path} is a link that leads out of --model_dir {self.path}; "
                    "put in its place what it leads to"
                )


def build_model(
    hparams: HParams, vocab_size: int, target_vocab_size: int | None = None
) -> Transformer:
    """Builds a model, its weights drawn from ``hparams.seed``.

    `target_vocab_size` is that of the target's own vocabulary, if it has one.
    """
    model = Transformer.from_hparams(hparams, vocab_size, target_vocab_size)
    random.seed(hparams.seed)  # from which Keras' initialisers draw their seeds
    model.build()
    return model
