"""Metadata of a training run, and the changes allowed when it is resumed."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from t2t_repro.hparams import HParams
from t2t_repro.hparams.fields import fields_that_change
from t2t_repro.hparams.settings import suggest_similar
from t2t_repro.system.errors import UserError

META_FILE = "model.json"
"""File of a model directory with the fields of `RunMetadata`."""

ORIGIN_KEYS = ("path", "weights", "fingerprint")
"""Keys of `RunMetadata.origin`."""

_FUNCTION = fields_that_change("function")

# Name for --accept_changes -> field of RunMetadata, and its name in messages.
_COMPARED = {
    "problem": ("problem", "problem"),
    "source_lang": ("source_lang", "source language"),
    "target_lang": ("target_lang", "target language"),
    "data": ("problem_fingerprint", "data"),
    "vocabulary": ("vocabulary_fingerprint", "vocabulary"),
}


@dataclass(frozen=True)
class RunMetadata:
    """Data and vocabulary of a training run.

    Attributes:
        problem: Name of the problem; None if unknown (imported model).
        source_lang: Code of the source language.
        target_lang: Code of the target language.
        data_dir: Absolute path of the data; None if the problem needs none.
        problem_fingerprint: Fingerprint of the data; None if unknown.
        vocabulary_fingerprint: SHA-256 of the vocabulary file.
        vocabulary_given: Whether the vocabulary was supplied as a file instead of
            being built from the data.
        origin: Path, weights and fingerprint of the model from which the training
            started (see `training.origin`); None for random weights.
    """

    problem: str | None
    source_lang: str
    target_lang: str
    data_dir: str | None
    problem_fingerprint: str | None
    vocabulary_fingerprint: str
    vocabulary_given: bool = False
    origin: dict[str, str] | None = None

    @property
    def data(self) -> str:
        """Identity of training data and vocabulary, which checkpoints record."""
        return f"{self.problem_fingerprint} {self.vocabulary_fingerprint}"

    @property
    def is_unknown(self) -> bool:
        """Whether the training data are unknown."""
        return self.problem is None and self.problem_fingerprint is None

    def is_well_formed(self) -> bool:
        """Returns whether the compared fields have the right types."""
        unknown = {"problem", "problem_fingerprint"} if self.is_unknown else set()
        names = {field for field, _ in _COMPARED.values()} - unknown
        if self.origin is not None and not {*ORIGIN_KEYS} <= {*self.origin}:
            return False
        if self.data_dir is not None:
            names.add("data_dir")
        return all(isinstance(getattr(self, name), str) for name in names)


def require_model(path: Path) -> None:
    """Raises UserError if a directory contains no model."""
    if (path / "saved_model.pb").exists():
        raise UserError(
            f"{path} is an exported SavedModel; give the directory of the "
            "model, or import the export with python -m t2t_repro.import_opennmt"
        )
    if not (path / META_FILE).exists():
        raise UserError(
            f"{path} holds no model: {META_FILE} is missing; train one "
            "with python -m t2t_repro.train"
        )


def compare_hparams(before: HParams, now: HParams, unknown: bool) -> dict[str, str]:
    """Returns descriptions of changed hyper-parameters, by name.

    Args:
        before: Hyper-parameters of the model directory.
        now: Hyper-parameters of this run.
        unknown: Whether the training data are unknown; if so, only hyper-parameters
            that change the model's function are compared.
    """
    before, now = before.resolve_auto(), now.resolve_auto()
    old, new = before.to_dict(), now.to_dict()
    compared = _FUNCTION if unknown else _FUNCTION | fields_that_change("training")
    if before.tokens_per_microbatch == now.tokens_per_microbatch:
        compared = compared - {"max_tokens_per_device"}
    return {
        key: f"{key} was {old[key]}, is now {new[key]}"
        for key in new
        if key in compared and old[key] != new[key]
    }


def compare_metadata(before: RunMetadata, now: RunMetadata) -> dict[str, str]:
    """Returns descriptions of changed metadata, by name for `--accept_changes`.

    Unknown values are not compared.
    """
    changes = {}
    for name, (field, label) in _COMPARED.items():
        old, new = getattr(before, field), getattr(now, field)
        if old and new and old != new:
            # Fingerprints start with their kind and differ at the end.
            changes[name] = f"{label} was {old[-24:]}, is now {new[-24:]}"
    return changes


def check_accepted(names: Iterable[str]) -> frozenset[str]:
    """Returns the names of `--accept_changes` as a set.

    Raises UserError for unknown names and for hyper-parameters that cannot change.
    """
    valid = {field.name for field in fields(HParams)} | _COMPARED.keys()
    accepted = frozenset(names)
    for name in sorted(accepted):
        if name not in valid:
            hint = suggest_similar(name, valid)
            hint = hint or "; use the name of a hyper-parameter, or data"
            raise UserError(f"--accept_changes {name}: unknown name{hint}")
        if name in _FUNCTION:
            raise UserError(
                f"--accept_changes {name}: the weights depend on {name}, so it cannot "
                "change; train a new model"
            )
    return accepted


def require_accepted(
    path: Path, changes: Mapping[str, str], accepted: Collection[str]
) -> None:
    """Raises UserError that lists the changes that are not `accepted`, if any."""
    rejected = {name: text for name, text in changes.items() if name not in accepted}
    if not rejected:
        return
    remedy = "use another directory"
    if not _FUNCTION.intersection(rejected):
        remedy += f", or accept with --accept_changes {','.join(changes)}"
    differences = "; ".join(rejected.values())
    raise UserError(
        f"--model_dir {path} holds a model with other settings: {differences}; {remedy}"
    )
