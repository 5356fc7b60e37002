"""Model directory: everything that commands need to use or resume a model.

Its files are ``hparams.yaml`` (the resolved set), ``model.json`` (problem, languages,
data), the vocabulary, ``result.json``, ``checkpoints/``, ``averaged/``, ``best_bleu/``,
``origin/`` (weights of ``train --init_from``), ``training_log.tsv``,
``validation_log.tsv``, ``skipped_pairs.tsv``, ``tensorboard/``, ``corpora_log.tsv``
(several corpora), ``validation/`` (the last translations of the validation sets),
``validation_sets.tsv`` (named validation sets) and, during training, ``training.lock``.
"""

import itertools
import json
import os
import random
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

from t2t_repro import hparams as hparam_sets
from t2t_repro import problems
from t2t_repro.hparams import HParams
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables, skip_initialization
from t2t_repro.problems.problem import Problem
from t2t_repro.runs.checkpoint_rotation import rank_checkpoints, record_data
from t2t_repro.runs.checkpoints import (
    MANAGED,
    Checkpoint,
    list_checkpoints,
    open_checkpoint,
    select_newest_data,
)
from t2t_repro.runs.run_metadata import (
    META_FILE,
    RunMetadata,
    compare_hparams,
    compare_metadata,
    require_accepted,
    require_model,
)
from t2t_repro.system.atomic_file import write_bytes_atomically, write_text_atomically
from t2t_repro.system.durability import make_folders
from t2t_repro.system.errors import UserError
from t2t_repro.system.locks import SIGN, exclusive_lock, heartbeat_lock, this_machine
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.tokenizer import Tokenizer

HPARAMS_FILE = "hparams.yaml"
RESULT_FILE = "result.json"
VALIDATION_DIR = "validation"
VALIDATION_SETS_FILE = "validation_sets.tsv"
CHECKPOINT_NAMES = ("best", "latest", "averaged", "best_bleu")
"""Names that `ModelDir.checkpoint` accepts; write ./latest for a folder ``latest``."""
# Name prefixes of the files that are written atomically. Their temporary files are
# removed after a killed run.
_LOGS = (
    *("training_log.tsv", "corpora_log.tsv"),
    *("validation_log.tsv", VALIDATION_SETS_FILE, "skipped_pairs.tsv"),
)
_WRITTEN_ATOMICALLY = (HPARAMS_FILE, META_FILE, RESULT_FILE, "vocab", *_LOGS, SIGN)


class ModelDir:
    """Directory of a model; it need not exist yet.

    Attributes:
        path: Path of the directory.
        checkpoint_dir: Folder of the checkpoints saved during training.
        averaged_dir: Folder of the averaged checkpoint.
        origin_dir: Folder with the weights that the training started from; absent if
            they were random.
        best_dir: Folder of the checkpoints with the best validation BLEU (trees: F1).
        result_file: Path of the file with the final scores of the training run.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoint_dir, self.best_dir = (path / name for name in MANAGED)
        self.averaged_dir = path / "averaged"
        self.origin_dir = path / "origin"
        self.result_file = path / RESULT_FILE

    def exists(self) -> bool:
        """Returns whether the directory contains a model, trained or not."""
        return (self.path / META_FILE).exists()

    def hparams(self) -> HParams:
        """Returns the resolved hyper-parameters; raises UserError without a model."""
        require_model(self.path)
        return hparam_sets.read(self.path / HPARAMS_FILE)

    def provenance(self) -> RunMetadata:
        """Returns the metadata of the training data; raises UserError if damaged."""
        require_model(self.path)
        path = self.path / META_FILE
        try:
            metadata = RunMetadata(**json.loads(path.read_text(encoding="utf-8")))
            if not metadata.is_well_formed():
                raise TypeError
        except (ValueError, TypeError, RecursionError):
            raise UserError(f"{path} is damaged; restore it from a copy") from None
        return metadata

    def problem(self) -> Problem:
        """Returns the model's problem; raises UserError if it is unknown."""
        data = self.provenance()
        if data.problem is None:
            raise UserError(
                f"{self.path} was imported, so its data are unknown; "
                "translate or score files instead, or train it further (python -m "
                f"t2t_repro.train --hparams {self.path / HPARAMS_FILE} --model_dir "
                f"{self.path} --problem NAME), which records the data"
            )
        return problems.create(
            data.problem, data.data_dir, data.source_lang, data.target_lang
        )

    def tokenizer(self) -> Tokenizer:
        """Returns the model's tokenizer.

        Raises UserError if its file is not the one that the model was trained with.
        """
        tokenizer = load_tokenizer(self.path)
        if tokenizer.fingerprint != self.provenance().vocabulary_fingerprint:
            raise UserError(
                f"{self.path / tokenizer.file_name} is not the vocabulary that this "
                "model was trained with; restore it from a copy"
            )
        return tokenizer

    def find_vocabulary(self, accepted: Collection[str] = ()) -> Path | None:
        """Returns the vocabulary file that a resumed training run must use.

        This is the model's vocabulary if it was supplied as a file, or if `accepted`
        allows other data: the weights still need the old vocabulary. Otherwise the
        vocabulary is built from the data, and the function returns None, as it does
        without a model.
        """
        if not self.exists():
            return None
        fixed = self.provenance().vocabulary_given or {"data", "problem"} & {*accepted}
        return self.path / self.tokenizer().file_name if fixed else None

    def make(self) -> None:
        """Creates the directory if it is missing."""
        try:
            make_folders(self.path)
        except OSError as error:
            raise UserError(f"--model_dir {self.path}: {error.strerror}") from None

    def begin(
        self,
        hparams: HParams,
        provenance: RunMetadata,
        tokenizer: Tokenizer,
        accepted: Collection[str] = (),
    ) -> None:
        """Writes the hyper-parameters, metadata and vocabulary after a `check`.

        Raises UserError if the check fails, a link in the directory leads out of it, or
        a file cannot be written.
        """
        self.check(hparams, provenance, accepted)
        self._refuse_links()
        self.make()
        if self.exists() and (before := self.provenance().data) != provenance.data:
            saved = map(list_checkpoints, (self.checkpoint_dir, self.best_dir))
            average = Checkpoint(self.averaged_dir, 0)
            record_data([*itertools.chain(*saved), average], before)
        tokenizer.save(self.path)
        # Other programs' models were not trained for the default number of steps.
        is_default = (
            provenance.is_unknown and hparams.train_steps == HParams.train_steps
        )
        hparams.save(self.path / HPARAMS_FILE, ["train_steps"] if is_default else ())
        # Written last: its presence means that the other files are complete.
        values = asdict(provenance)
        if provenance.origin is None:
            del values["origin"]
        text = json.dumps(values, indent=2) + "\n"
        write_text_atomically(self.path / META_FILE, text)

    @contextmanager
    def lock(self, log: Callable[[str], object] = print) -> Iterator[None]:
        """Locks the directory for one training run; removes files of a killed one.

        Creates the directory and its parents, and removes those of them that are empty
        at the end. The stale lock of another machine is detected after half a minute;
        `log` is called with a message before the wait. Raises UserError if another run
        holds the lock.
        """

        def raise_locked() -> NoReturn:
            raise UserError(
                f"--model_dir {self.path}: another process is training in it; wait for "
                "it to end or choose another directory"
            )

        created = itertools.takewhile(lambda p: not p.exists(), self.path.parents)
        folders = self.path, *created
        self.make()
        with ExitStack() as stack:
            # The directory is empty if nothing was trained.
            stack.callback(_remove_if_empty, *folders)
            has_locks = stack.enter_context(exclusive_lock(self.path, raise_locked))
            owner = this_machine() if has_locks else f"{this_machine()} {os.getpid()}"
            stack.enter_context(heartbeat_lock(self.path, owner, log, raise_locked))
            for name in _WRITTEN_ATOMICALLY:
                for leftover in self.path.glob(f".{name}.*"):
                    leftover.unlink()
            for leftover in (self.path / VALIDATION_DIR).glob(".*"):
                leftover.unlink()
            yield

    @contextmanager
    def restore_on_error(self) -> Iterator[None]:
        """Restores the settings if the block raises and has saved no checkpoint.

        A training that is refused before its first step thus leaves no trace, and the
        corrected command is compared with the earlier settings.
        """
        was_there = self.exists()
        saved = list_checkpoints(self.checkpoint_dir)
        before = {path: path.read_bytes() for path in self._settings_files()}
        try:
            yield
        except BaseException:
            if list_checkpoints(self.checkpoint_dir) == saved:
                written = self._settings_files()
                if not was_there:
                    written += [self.path / name for name in _LOGS]
                    for folder in ("tensorboard", VALIDATION_DIR):
                        shutil.rmtree(self.path / folder, ignore_errors=True)
                    _remove_if_empty(self.checkpoint_dir)
                for path in written:
                    if path not in before:
                        path.unlink(missing_ok=True)
                for path, contents in before.items():
                    write_bytes_atomically(path, contents)
            raise

    def _settings_files(self) -> list[Path]:
        """Returns the existing files that `begin` writes."""
        names = HPARAMS_FILE, META_FILE
        files = [path for name in names if (path := self.path / name).exists()]
        return files + sorted(self.path.glob("vocab.*"))

    def check(
        self, hparams: HParams, provenance: RunMetadata, accepted: Collection[str] = ()
    ) -> None:
        """Raises UserError for changes of settings or data that are not `accepted`.

        Unknown values are not compared. For an imported model, the only compared
        hyper-parameters are those that change its function.
        """
        if not self.exists():
            return
        before = self.provenance()
        changes = compare_hparams(self.hparams(), hparams, before.is_unknown)
        changes |= compare_metadata(before, provenance)
        require_accepted(self.path, changes, accepted)

    def checkpoint(self, spec: str = "best") -> Checkpoint:
        """Returns a checkpoint by its name or folder.

        Args:
            spec: "latest", "averaged", "best_bleu" (best validation BLEU; chrF or F1 if
                BLEU does not suit the targets), "best" (averaged if it exists and is of
                the same data as the latest, otherwise latest), or a folder.

        Raises:
            UserError: The checkpoint is missing or damaged.
        """
        require_model(self.path)
        if spec == "best":
            spec = "averaged" if self._average_is_current() else "latest"
        if spec == "averaged":
            if self.averaged_dir.is_dir():
                return open_checkpoint(self.averaged_dir)
            raise UserError(
                f"{self.path} contains no averaged checkpoint; create one with "
                f"python -m t2t_repro.average --model_dir {self.path}"
            )
        if spec == "best_bleu":
            if best := rank_checkpoints(self.best_dir):
                return best[0]
            raise UserError(
                f"{self.path} contains no checkpoint with the best validation BLEU; "
                "train beyond the warm-up with keep_best_checkpoints of at least 1"
            )
        if spec == "latest":
            if checkpoints := list_checkpoints(self.checkpoint_dir):
                return checkpoints[-1]
            raise UserError(
                f"{self.path} contains no checkpoint; train the model with "
                "python -m t2t_repro.train"
            )
        if Path(spec).is_dir():
            return open_checkpoint(Path(spec))
        raise UserError(
            f"checkpoint {spec}: no such folder; use the path of a checkpoint or one "
            "of averaged, latest, best, best_bleu"
        )

    def model(
        self, checkpoint: Checkpoint, tokenizer: Tokenizer | None = None
    ) -> Transformer:
        """Builds the model with a checkpoint's weights.

        A large vocabulary takes 14 MB, so pass the model's `tokenizer` if it exists.
        Raises UserError if the weights do not fit the model or are damaged.
        """
        tokenizer = tokenizer or self.tokenizer()
        sizes = tokenizer.vocab_size, tokenizer.target_vocab_size
        with skip_initialization():
            model = build_model(self.hparams(), *sizes)
        with checkpoint.hold():
            checkpoint.tensors().assign(named_variables(model))
        return model

    def result(self) -> dict[str, Any] | None:
        """Returns the scores of the averaged checkpoint in ``result.json``.

        Returns None if they are missing, or if the user has averaged other checkpoints
        since.
        """
        try:
            result = json.loads(self.result_file.read_text(encoding="utf-8"))
            averaged = self.checkpoint("averaged").meta()["averaged_steps"]
        except (OSError, ValueError, KeyError, RecursionError, UserError):
            return None
        is_current = (
            isinstance(result, dict) and result.get("averaged_steps") == averaged
        )
        return result if is_current else None

    def _average_is_current(self) -> bool:
        """Returns whether an average exists and its data are those of the latest."""
        average = Checkpoint(self.averaged_dir, 0)
        newest = list_checkpoints(self.checkpoint_dir)[-1:]
        return average.path.is_dir() and average in select_newest_data(
            [average, *newest]
        )

    def _refuse_links(self) -> None:
        """Raises UserError if a link in an untrusted directory leads out of it."""
        root = self.path.resolve()
        for path in (*self.path.glob("*"), *self.path.glob("*/*")):
            if path.is_symlink() and root not in path.resolve().parents:
                raise UserError(
                    f"{path} is a link that leads out of --model_dir {self.path}; "
                    "replace it with a copy of its target"
                )


def _remove_if_empty(*folders: Path) -> None:
    """Removes folders, each of which contains the one before, up to one with files."""
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


def build_model(
    hparams: HParams, vocab_size: int, target_vocab_size: int | None = None
) -> Transformer:
    """Builds a model with weights initialized from ``hparams.seed``.

    Args:
        hparams: Hyper-parameters.
        vocab_size: Number of tokens of the (source) vocabulary.
        target_vocab_size: Number of tokens of a separate target vocabulary; None for a
            shared one.
    """
    model = Transformer.from_hparams(hparams, vocab_size, target_vocab_size)
    random.seed(hparams.seed)  # Keras initializers draw their seeds from `random`.
    model.build()
    return model
