"""What a model was made from, and what of it may change when its training goes on."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from t2t_repro.hparams import HParams
from t2t_repro.hparams.fields import fields_that_change
from t2t_repro.hparams.settings import did_you_mean
from t2t_repro.system.errors import UserError

META_FILE = "model.json"
"""The file of a model directory that says what the model was made from."""

_FUNCTION = fields_that_change("function")

# What may differ only if it is asked for: its name there -> the field, and how
# messages call it.
_COMPARED = {
    "problem": ("problem", "problem"),
    "source_lang": ("source_lang", "source language"),
    "target_lang": ("target_lang", "target language"),
    "data": ("problem_fingerprint", "data"),
    "vocabulary": ("vocabulary_fingerprint", "vocabulary"),
}


@dataclass(frozen=True)
class RunMetadata:
    """What a model learns from."""

    problem: str | None  # None: unknown, for the model was imported.
    source_lang: str
    target_lang: str
    data_dir: str | None  # Where the data are, absolute; None needs none.
    problem_fingerprint: str | None  # Of the data; None: unknown, as the problem.
    vocabulary_fingerprint: str  # SHA-256 of the vocabulary file.
    vocabulary_given: bool = False  # As a file, instead of built from the data.

    @property
    def is_unknown(self) -> bool:
        """Whether nothing is known of the data the model learned from."""
        return self.problem is None and self.problem_fingerprint is None

    def is_well_formed(self) -> bool:
        """Whether all that is compared has its type."""
        unknown = {"problem", "problem_fingerprint"} if self.is_unknown else set()
        names = {field for field, _ in _COMPARED.values()} - unknown
        if self.data_dir is not None:
            names.add("data_dir")
        return all(isinstance(getattr(self, name), str) for name in names)


def require_model(path: Path) -> None:
    """Raises UserError unless a model was begun in a directory."""
    if not (path / META_FILE).exists():
        raise UserError(
            f"--model_dir {path} holds no model ({META_FILE} is missing); "
            "train one with python -m t2t_repro.train"
        )


def changed_hparams(before: HParams, now: HParams, unknown: bool) -> dict[str, str]:
    """Compares settings; of an `unknown` training only what decides the function.

    Returns what each changed setting was and is, by its name for `--accept_changes`.
    """
    before, now = before.resolve_auto(), now.resolve_auto()
    old, new = before.to_dict(), now.to_dict()
    compared = _FUNCTION if unknown else _FUNCTION | fields_that_change("training")
    if before.tokens_per_part == now.tokens_per_part:
        compared = compared - {"max_tokens_per_device"}
    return {
        key: f"{key}={old[key]} there, {new[key]} here"
        for key in new
        if key in compared and old[key] != new[key]
    }


def changed_metadata(before: RunMetadata, now: RunMetadata) -> dict[str, str]:
    """Compares what a model learned from and is to learn from, where both are known.

    Returns the same as `changed_hparams`.
    """
    changes = {}
    for name, (field, spoken) in _COMPARED.items():
        there, here = getattr(before, field), getattr(now, field)
        if there and here and there != here:
            # The ends of fingerprints differ, their beginnings name their kind.
            changes[name] = f"{spoken} {there[-24:]} there, {here[-24:]} here"
    return changes


def check_accepted(names: Iterable[str]) -> frozenset[str]:
    """Returns the changes asked for; raises UserError for one that cannot be."""
    known = {field.name for field in fields(HParams)} | _COMPARED.keys()
    accepted = frozenset(names)
    for name in sorted(accepted):
        if name not in known:
            hint = did_you_mean(name, known) or "; name a hyper-parameter, or data"
            raise UserError(f"--accept_changes {name}: there is no such thing{hint}")
        if name in _FUNCTION:
            raise UserError(
                f"--accept_changes {name}: with another {name} the weights mean "
                "nothing; train another model"
            )
    return accepted


def refuse(path: Path, changes: Mapping[str, str], accepted: Collection[str]) -> None:
    """Raises UserError that names the changes that nobody asked for, if any."""
    left = {name: text for name, text in changes.items() if name not in accepted}
    if not left:
        return
    how = "name another directory"
    if not _FUNCTION.intersection(left):
        how += f", or go on all the same with --accept_changes {','.join(left)}"
    told = "; ".join(left.values())
    raise UserError(
        f"--model_dir {path} holds a model of other settings: {told}; {how}"
    )
