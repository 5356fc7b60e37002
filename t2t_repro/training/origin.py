"""Start of a training from the weights of another model (`train --init_from`)."""

import hashlib
import re
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from t2t_repro.hparams import HParams
from t2t_repro.hparams.fields import fields_that_change
from t2t_repro.interop.foreign_folder import read_folder
from t2t_repro.problems.problem import SPLITS, Problem
from t2t_repro.runs.checkpoints import is_checkpoint, list_checkpoints
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.tokenizer import LABEL, Tokenizer

FLAG = "--init_from"

_SEARCH = (
    *("beam_size", "alpha", "decode_extra_length", "decode_length_factor"),
    *("search", "word_penalty", "allow_unknown"),
)
_INHERITED = fields_that_change("function").union(_SEARCH)
"""Hyper-parameters that a training has from its origin unless --hparams gives them."""


VOCABULARY = ("tokenizer", "vocab_size", "share_vocab")
"""Hyper-parameters of a vocabulary that is built from text."""


@dataclass(frozen=True)
class Origin:
    """Weights, vocabulary and hyper-parameters that a training starts from.

    Attributes:
        path: Path of the model, as given.
        weights: Checkpoint or file of the weights.
        fingerprint: SHA-256 of the names and values of the weights.
        hparams: Hyper-parameters of the model and its search.
        tokenizer: Tokenizer of the model.
        assign: Function that assigns the weights to variables by name.
        read: Function that returns the weights of a name.
        replaces_vocabulary: Whether the training has its own vocabulary.
    """

    path: Path
    weights: str
    fingerprint: str
    hparams: HParams
    tokenizer: Tokenizer
    assign: Callable[[Mapping[str, Any]], None]
    read: Callable[[str], np.ndarray]
    replaces_vocabulary: bool = False

    def record(self) -> dict[str, str]:
        """Returns the values for ``model.json`` and ``result.json``."""
        return {
            "path": str(self.path.resolve()),
            "weights": self.weights,
            "fingerprint": self.fingerprint,
        }


def open_origin(path: Path, vocab_file: Path | None = None) -> Origin:
    """Opens a model directory, a checkpoint in one, or another program's folder.

    Of a model directory, the averaged weights are used if they exist and are of the
    same data as the last checkpoint; otherwise the last checkpoint.

    Args:
        path: Path of the model.
        vocab_file: Vocabulary of another program's model outside its folder.

    Raises:
        UserError: There is no such model, or it is damaged or not supported.
    """
    directories = (ModelDir(folder) for folder in path.absolute().parents[:2])
    directory = next((each for each in directories if each.exists()), None)
    if ModelDir(path).exists():
        return _open_model(path, ModelDir(path), "best")
    if directory is not None and is_checkpoint(path):
        return _open_model(path, directory, str(path))
    source = read_folder(path, FLAG, vocab_file)

    def assign(variables: Mapping[str, Any]) -> None:
        for name, variable in variables.items():
            variable.assign(source.weights[name])

    read = source.weights.__getitem__
    fingerprint, file = _fingerprint(source.weights, read), source.weights_file.name
    hparams, tokenizer = source.hparams, source.tokenizer
    return Origin(path, file, fingerprint, hparams, tokenizer, assign, read)


def _open_model(path: Path, directory: ModelDir, spec: str) -> Origin:
    checkpoint = directory.checkpoint(spec)
    with checkpoint.hold():
        file = checkpoint.tensors()
        fingerprint = _fingerprint(file.shapes(), file.read)
    hparams, tokenizer = directory.hparams(), directory.tokenizer()
    name = checkpoint.path.name
    return Origin(path, name, fingerprint, hparams, tokenizer, file.assign, file.read)


def _fingerprint(names: Iterable[str], read: Callable[[str], np.ndarray]) -> str:
    """Returns the SHA-256 of named float32 arrays, independent of their order."""
    digest = hashlib.sha256()
    for name in sorted(names):
        value = np.ascontiguousarray(read(name), np.float32)
        digest.update(f"{name} {value.shape}\n".encode())
        digest.update(value.tobytes())
    return digest.hexdigest()


@contextmanager
def vocabulary_of(origin: Origin | None, given: Path | None) -> Iterator[Path | None]:
    """Yields the vocabulary file of a training.

    Args:
        origin: Model whose vocabulary is used, unless it is replaced; None for `given`.
        given: Vocabulary file of the user; it must have the contents of the origin's,
            unless that is replaced.

    Raises:
        UserError: `given` is not the vocabulary of the origin.
    """
    if origin is None or origin.replaces_vocabulary:
        yield given
        return
    fingerprint = origin.tokenizer.fingerprint
    if given is not None and load_tokenizer(given).fingerprint != fingerprint:
        raise UserError(
            f"--vocab_file {given} is not the vocabulary of {FLAG} {origin.path}, "
            "which its weights need; omit --vocab_file"
        )
    with tempfile.TemporaryDirectory() as folder:
        origin.tokenizer.save(folder)
        yield Path(folder) / origin.tokenizer.file_name


@dataclass(frozen=True)
class Start:
    """Start of a training.

    Attributes:
        hparams: Hyper-parameters.
        origin: Model whose weights are used at step 0; None for random weights, or if
            the training resumes.
        record: `Origin.record` of the model from which the training started, possibly
            in an earlier process; None for random weights.
    """

    hparams: HParams
    origin: Origin | None = None
    record: dict[str, str] | None = None


def choose_start(
    given: Mapping[str, Any],
    init_from: Path | None,
    model_dir: ModelDir,
    vocab_file: Path | None,
    log: Callable[[str], None],
    guard: str | None = None,
    free: Collection[str] = (),
) -> Start:
    """Determines the start of a training and completes its hyper-parameters.

    A training that started from a model resumes without it: weights, hyper-parameters
    and vocabulary are then in the training's own model directory.

    Args:
        given: Hyper-parameters that --hparams and other flags give.
        init_from: Value of --init_from.
        model_dir: Model directory of the training.
        vocab_file: Value of --vocab_file, unless the vocabulary is replaced.
        log: Function called with lines about the origin.
        guard: Fingerprint of the guard set; None for no guard.
        free: Hyper-parameters that may differ from those of the model.

    Raises:
        UserError: The model cannot be used, does not fit `given`, or is not the one
            from which the training in `model_dir` started.
    """
    record = model_dir.provenance().origin if model_dir.exists() else None
    if record is None and init_from is None and guard is not None:
        raise UserError(f"--guard needs {FLAG}, the model that it compares with")
    if guard is not None and given.get("ema_decay"):
        raise UserError(
            "--guard selects from averages of checkpoints, not from a moving average; "
            "set ema_decay=0"
        )
    if record is not None and record.get("guard") != guard:
        has = "has another guard set" if "guard" in record else "has no guard"
        raise UserError(
            f"--guard: the training in {model_dir.path} {has}; give the same --guard "
            "as at its start, or another --model_dir"
        )
    if record is None:
        if init_from is None:
            return Start(HParams(**given))
        if model_dir.exists():
            raise UserError(
                f"--model_dir {model_dir.path} holds a model that did not start from "
                f"{FLAG} {init_from}; give another --model_dir, or omit {FLAG} to "
                "train that model further"
            )
        origin = open_origin(init_from, vocab_file)
        hparams = inherit(given, origin.hparams, init_from, free)
        guarded = {"guard": guard} if guard else {}
        return Start(hparams, origin, origin.record() | guarded)
    hparams = HParams(**_complete(given, model_dir.hparams()))
    resumes = bool(list_checkpoints(model_dir.checkpoint_dir))
    if resumes and (init_from is None or not init_from.exists()):
        if init_from is not None:
            log(f"{FLAG} {init_from} does not exist; resuming without it")
        return Start(hparams, None, record)
    if init_from is None:
        raise UserError(
            f"{model_dir.path} contains no checkpoint yet; give {FLAG} "
            f"{record['path']} again"
        )
    origin = open_origin(init_from, vocab_file)
    if origin.fingerprint != record["fingerprint"]:
        raise UserError(
            f"{FLAG} {init_from} has other weights (fingerprint "
            f"{origin.fingerprint[:12]}) than the model from which the training in "
            f"{model_dir.path} started ({record['fingerprint'][:12]}); omit {FLAG} to "
            "resume, or give another --model_dir"
        )
    return Start(hparams, None if resumes else origin, record)


def _complete(given: Mapping[str, Any], origin: HParams) -> dict[str, Any]:
    """Returns `given` with the inherited hyper-parameters that it lacks."""
    return {name: getattr(origin, name) for name in _INHERITED} | dict(given)


def inherit(
    given: Mapping[str, Any],
    origin: HParams,
    path: Path,
    free: Collection[str] = (),
) -> HParams:
    """Returns `given` with the architecture and the search of the origin.

    Args:
        given: Hyper-parameters by name.
        origin: Hyper-parameters of the origin.
        path: Path of the origin, for messages.
        free: Hyper-parameters that may differ from those of the origin.

    Raises:
        UserError: A given value would change the function of the weights.
    """
    values = origin.to_dict()
    compared = fields_that_change("function").difference(free)
    differences = [
        f"{name}={given[name]}, but {name}={values[name]} in {path}"
        for name in given
        if name in compared and given[name] != values[name]
    ]
    if differences:
        raise UserError(
            f"--hparams: {'; '.join(differences)}; the weights of {FLAG} need the "
            "values of their model: omit these hyper-parameters, or use the set adapt "
            "or the hparams.yaml of the model"
        )
    return HParams(**_complete(given, origin))


def check_labels(
    problem: Problem, tokenizer: Tokenizer, splits: Sequence[str] = SPLITS
) -> None:
    """Checks the sources for a model that was trained with language labels.

    Raises:
        UserError: A source does not begin with a label of the vocabulary.
    """
    if not tokenizer.labels:
        return
    shown = ", ".join(sorted(tokenizer.labels)[:8])
    for split in filter(problem.has, splits):
        for number, (source, _) in enumerate(problem.pairs(split), 1):
            match = re.match(LABEL, source)
            if match and match[0] in tokenizer.labels:
                continue
            raise UserError(
                f"source {number:,} of the {split} split, {source[:40]!r}, does not "
                f"begin with a language label, but the model of {FLAG} was trained "
                f"with labels; begin each source with one of {shown}"
            )
