"""A model directory: it describes itself, so later commands need only its path.

``hparams.yaml`` (the resolved set), ``model.json`` (problem, languages, data),
the vocabulary, ``checkpoints/``, ``averaged/``, ``training_log.tsv``,
``tensorboard/`` and ``result.json``.
"""

import fcntl
import json
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from t2t_repro import hparams as hparam_sets
from t2t_repro import problems
from t2t_repro.data.tokenizer import Tokenizer
from t2t_repro.data.tokenizers import load_tokenizer
from t2t_repro.errors import UserError
from t2t_repro.hparams import HParams
from t2t_repro.models.transformer import Transformer, named_variables
from t2t_repro.problems.problem import Problem
from t2t_repro.text_files import write_text_atomically
from t2t_repro.training.checkpoints import (
    Checkpoint,
    list_checkpoints,
    open_checkpoint,
)

HPARAMS_FILE = "hparams.yaml"
META_FILE = "model.json"
RESULT_FILE = "result.json"

# What may differ when a training goes on: how long, how often, and how to decode.
_FREE = {
    "train_steps",
    "checkpoint_steps",
    "checkpoint_minutes",
    "keep_checkpoints",
    "average_last",
    "eval_steps",
    "max_tokens_per_device",
    "beam_size",
    "alpha",
    "decode_extra_length",
}

# What decides the function itself, which alone may not differ while nothing is known
# of how a model was trained.
_FUNCTION = {
    "tokenizer",
    "vocab_size",
    "d_model",
    "d_ff",
    "num_heads",
    "d_k",
    "d_v",
    "num_layers",
    "num_decoder_layers",
    "norm",
    "max_relative_position",
    "position",
    "max_position",
    "share_embeddings",
    "scale_embeddings",
    "vocab_divisor",
    "target_space_embedding",
    "target_space_id",
}

# What of the provenance may not differ, and what people call it.
_COMPARED = {
    "problem": "problem",
    "source_lang": "source language",
    "target_lang": "target language",
    "problem_fingerprint": "data",
    "vocabulary_fingerprint": "vocabulary",
}


@dataclass(frozen=True)
class Provenance:
    """What a model learns from.

    Attributes:
        problem: the problem's name; None: unknown, the model was imported.
        source_lang: language of the sources.
        target_lang: language of the targets.
        data_dir: where the problem finds its data, absolute; None needs none.
        problem_fingerprint: identifies the data; None: unknown, as the problem.
        vocabulary_fingerprint: SHA-256 of the vocabulary file.
        vocabulary_given: whether the vocabulary was given as a file instead of
            being built from the data.
    """

    problem: str | None
    source_lang: str
    target_lang: str
    data_dir: str | None
    problem_fingerprint: str | None
    vocabulary_fingerprint: str
    vocabulary_given: bool = False


class ModelDir:
    """A directory that holds a model.

    Args:
        path: the directory; it need not exist yet.
    """

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
    def result_file(self) -> Path:
        """Where the training writes its score."""
        return self.path / RESULT_FILE

    def exists(self) -> bool:
        """Says whether a model was begun here."""
        return (self.path / META_FILE).exists()

    def hparams(self) -> HParams:
        """Returns the resolved hyper-parameters."""
        self._require()
        return hparam_sets.read(self.path / HPARAMS_FILE)

    def provenance(self) -> Provenance:
        """Returns what the model learns from.

        Raises:
            UserError: the description is damaged.
        """
        self._require()
        path = self.path / META_FILE
        try:
            found = Provenance(**json.loads(path.read_text(encoding="utf-8")))
            unknown = {"problem", "problem_fingerprint"} if _is_unknown(found) else ()
            known = _COMPARED.keys() - unknown
            if not all(isinstance(getattr(found, field), str) for field in known):
                raise TypeError
        except (ValueError, TypeError):
            raise UserError(f"{path} is damaged; restore it from a copy") from None
        return found

    def problem(self) -> Problem:
        """Returns the problem the model learns from.

        Raises:
            UserError: it is unknown.
        """
        found = self.provenance()
        if found.problem is None:
            raise UserError(
                f"--model_dir {self.path} was imported, so its data are unknown; "
                "translate with it, or train it on (python -m t2t_repro.train "
                f"--hparams {self.path / HPARAMS_FILE} --model_dir {self.path} "
                "--problem NAME), which makes them known"
            )
        return problems.create(
            found.problem, found.data_dir, found.source_lang, found.target_lang
        )

    def tokenizer(self) -> Tokenizer:
        """Returns the model's vocabulary.

        Raises:
            UserError: it is not the one the model was made with.
        """
        tokenizer = load_tokenizer(self.path)
        if tokenizer.fingerprint != self.provenance().vocabulary_fingerprint:
            raise UserError(
                f"{self.path / tokenizer.file_name} is not the vocabulary that this "
                "model was made with; restore it from a copy"
            )
        return tokenizer

    def given_vocabulary(self) -> Path | None:
        """Returns the vocabulary file with which the training goes on.

        None where no model was begun or its vocabulary is built from the data.

        Raises:
            UserError: it is not the one the model was made with.
        """
        if not self.exists() or not self.provenance().vocabulary_given:
            return None
        return self.path / self.tokenizer().file_name

    def begin(
        self, hparams: HParams, provenance: Provenance, tokenizer: Tokenizer
    ) -> None:
        """Writes the description of a new model, or checks that of an old one.

        Args:
            hparams: the resolved set.
            provenance: what the model learns from.
            tokenizer: the vocabulary, which is copied into the directory.

        Raises:
            UserError: the directory holds a model of other hyper-parameters, data
                or vocabulary, or it cannot be written.
        """
        if self.exists():
            self.check_hparams(hparams)
            self._check_provenance(provenance)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"--model_dir {self.path}: {error.strerror}") from None
        tokenizer.save(self.path)
        hparams.save(self.path / HPARAMS_FILE)
        # Last: its presence says that the rest is there.
        text = json.dumps(asdict(provenance), indent=2) + "\n"
        write_text_atomically(self.path / META_FILE, text)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the directory for one training until the context ends.

        The folder itself is locked: nothing is left of the lock when a process dies.

        Raises:
            UserError: another process trains in it.
        """
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise UserError(
                f"--model_dir {self.path}: another process trains in it; wait for it, "
                "or name another directory"
            ) from None
        try:
            yield
        finally:
            os.close(descriptor)

    def check_hparams(self, hparams: HParams) -> None:
        """Refuses to go on with hyper-parameters that make another model.

        An imported model may be trained on as one likes, but for its function.

        Args:
            hparams: the resolved set; nothing is checked where no model was begun.

        Raises:
            UserError: naming what differs.
        """
        if not self.exists():
            return
        before, now = self.hparams().to_dict(), hparams.to_dict()
        compared = _FUNCTION if _is_unknown(self.provenance()) else now.keys() - _FREE
        self._refuse(
            [
                f"{key}={before[key]} there, {now[key]} here"
                for key in now
                if key in compared and before[key] != now[key]
            ]
        )

    def checkpoint(self, spec: str = "best") -> Checkpoint:
        """Returns a checkpoint by "latest", "averaged", or the path of its folder.

        "best" is the averaged one where there is one, else the latest.

        Raises:
            UserError: there is none.
        """
        self._require()
        averaged = self.averaged_dir.is_dir()
        if spec == "averaged" or (spec == "best" and averaged):
            if not averaged:
                raise UserError(
                    f"{self.path} has no averaged checkpoint yet; run "
                    f"python -m t2t_repro.average --model_dir {self.path} --last 5"
                )
            return open_checkpoint(self.averaged_dir)
        if spec not in ("latest", "best"):
            if not Path(spec).is_dir():
                raise UserError(
                    f"--checkpoint {spec}: no such folder; name one, or say "
                    "averaged, latest or best"
                )
            return open_checkpoint(Path(spec))
        found = list_checkpoints(self.checkpoint_dir)
        if not found:
            raise UserError(
                f"{self.path} has no checkpoint yet; train it with "
                "python -m t2t_repro.train"
            )
        return found[-1]

    def model(self, checkpoint: Checkpoint) -> Transformer:
        """Builds the model with a checkpoint's weights.

        Raises:
            UserError: the checkpoint is damaged or belongs to another model.
        """
        model = build_model(self.hparams(), self.tokenizer().vocab_size)
        checkpoint.tensors().assign_to(named_variables(model))
        return model

    def _require(self) -> None:
        if not self.exists():
            raise UserError(
                f"--model_dir {self.path} holds no model ({META_FILE} is missing); "
                "train one with python -m t2t_repro.train"
            )

    def _check_provenance(self, provenance: Provenance) -> None:
        """Refuses to go on with other data or another vocabulary."""
        old, changed = self.provenance(), []
        for field, name in _COMPARED.items():
            there, here = getattr(old, field), getattr(provenance, field)
            if there is not None and there != here:
                # The ends of fingerprints differ, their beginnings name their kind.
                changed.append(f"{name} {there[-24:]} there, {here[-24:]} here")
        self._refuse(changed)

    def _refuse(self, changed: list[str]) -> None:
        if changed:
            raise UserError(
                f"--model_dir {self.path} holds a model of other settings: "
                f"{'; '.join(changed)}; name another directory"
            )


def _is_unknown(provenance: Provenance) -> bool:
    """Says whether nothing is known of the data a model learned from."""
    return provenance.problem is None and provenance.problem_fingerprint is None


def build_model(hparams: HParams, vocab_size: int) -> Transformer:
    """Builds a model, its weights drawn from ``hparams.seed``."""
    # Keras' initialisers draw their seeds from Python's generator. Its
    # set_random_seed would seed TensorFlow too, which empties TensorFlow's cache of
    # kernels, and with it the SentencePiece models that live in them.
    random.seed(hparams.seed)
    model = Transformer(hparams, vocab_size)
    model.build()
    return model
