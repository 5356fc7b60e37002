"""Strict settings: each field of a frozen dataclass says what it may hold.

A misspelt or mistyped setting that is silently ignored costs a training run, so
each field carries its rule, and everything that breaks one is refused by name.
This file knows nothing of Transformers; `fields.py` declares the fields.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import functools
import math
import textwrap
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import yaml

from t2t_repro.system.errors import UserError

AUTO = "auto"
"""The word that leaves a value to the device that a training begins on."""

INT32_MAX = 2**31 - 1
"""The largest whole number that TensorFlow's graphs are given here."""


# As a person would say it.
_TYPE_NAMES = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a word",
}


@dataclasses.dataclass(frozen=True)
class Rule:
    """What one field means and which values it allows."""

    doc: str  # One sentence for people, with the unit.
    source: str  # Where the default comes from (paper section, tensor2tensor, own).
    minimum: float | None = None  # Smallest allowed number, or None.
    # Largest allowed number; None: of whole numbers `INT32_MAX`.
    maximum: float | None = None
    below: float | None = None  # Every allowed number is less than this, or None.
    choices: tuple[str, ...] = ()  # The allowed strings; empty when any is.
    # What the word "auto" stands for on a CPU, and what a file holds that was written
    # before the field could be "auto"; None: the field has no "auto".
    plain: Any = None
    # What another value changes of a model that was begun: its "function", so that its
    # weights mean nothing; its "training", which goes on only if that is asked for; or
    # "nothing".
    changes: Literal["function", "training", "nothing"] = "training"

    def complaint(self, value: object) -> str | None:
        """Returns what is wrong with a value of the right type, or None."""
        if self.choices and value not in self.choices:
            return f"must be one of {', '.join(self.choices)}"
        if isinstance(value, str) and not value.strip():
            return "must not be empty"
        if isinstance(value, float) and not math.isfinite(value):
            return "must be finite"
        if isinstance(value, int | float) and not isinstance(value, bool):
            if self.minimum is not None and value < self.minimum:
                return f"must be at least {self.minimum:g}"
            maximum = self.maximum
            if maximum is None and isinstance(value, int):
                maximum = INT32_MAX
            if maximum is not None and value > maximum:
                return f"must be at most {maximum:,}"
            if self.below is not None and value >= self.below:
                return f"must be less than {self.below:g}"
        return None


def setting(default: Any, doc: str, source: str, **others: Any) -> Any:
    """Declares a dataclass field with its `Rule`; typed Any, as `dataclasses.field`."""
    rule = Rule(doc, source, **others)
    return dataclasses.field(default=default, metadata={"rule": rule})


def rule_of(field: dataclasses.Field[Any]) -> Rule:
    """Returns the rule that `setting` put on a field."""
    rule: Rule = field.metadata["rule"]
    return rule


@functools.cache
def field_types(owner: type) -> dict[str, tuple[type, bool, Rule]]:
    """Returns field name -> (type, whether None is allowed, rule), in declared order.

    `owner` is a dataclass whose fields are int, float, bool or str, or optional; a
    field with a `Rule.plain` may be `AUTO` as well.
    """
    found, hints = {}, typing.get_type_hints(owner)
    for field in dataclasses.fields(owner):
        members = typing.get_args(hints[field.name]) or (hints[field.name],)
        found[field.name] = members[0], types.NoneType in members, rule_of(field)
    return found


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Returns '; did you mean X?' for the candidate nearest to a name, or ''."""
    near = difflib.get_close_matches(name, list(candidates), n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else ""


def check_keys(owner: type, values: Mapping[Any, object], where: str) -> None:
    """Raises UserError for a key that is no field of `owner`, with the nearest one.

    `where` is the file or flag that the values came from, for the message.
    """
    known = field_types(owner)
    for key in values:
        if key not in known:
            hint = did_you_mean(str(key), known) or f"; known are {', '.join(known)}"
            raise UserError(f"{where}: unknown hyper-parameter {key!r}{hint}")


def checked(owner: type, name: str, value: object, where: str) -> Any:
    """Returns a field's value, exactly typed and within its limits, else a UserError.

    A whole number is welcome where a float is wanted; nothing else is converted.
    """
    wanted, optional, rule = field_types(owner)[name]
    has_auto = rule.plain is not None
    if (value is None and optional) or (value == AUTO and has_auto):
        return value
    if wanted is float and type(value) is int:
        value = float(value)
    if type(value) is not wanted:
        raise UserError(
            f"{where}: {name} must be {_TYPE_NAMES[wanted]}{' or null' * optional}"
            f"{f' or {AUTO}' * has_auto}, not {value!r} ({type(value).__name__})"
        )
    if complaint := rule.complaint(value):
        raise UserError(f"{where}: {name}={value!r} {complaint}")
    return value


def as_yaml(settings: Any) -> str:
    """Returns a dataclass as YAML, each value under its meaning and source."""
    lines = []
    for field in dataclasses.fields(settings):
        rule = rule_of(field)
        comment = textwrap.wrap(f"{rule.doc} ({rule.source})", 80)
        lines += [f"# {line}" for line in comment]
        lines.append(yaml.safe_dump({field.name: getattr(settings, field.name)}))
    return "\n".join(lines)


def parse_overrides(owner: type, text: str, where: str) -> dict[str, Any]:
    """Reads 'key=value,key=value' into settings, each checked by its rule.

    A part without '=', an unknown or repeated key, or a wrong value is a UserError.
    """
    values: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise UserError(f"{where}: {part!r} is not of the form key=value")
        check_keys(owner, {key: value}, where)
        if key in values:
            raise UserError(f"{where}: {key} is given twice")
        values[key] = checked(owner, key, _parsed(owner, key, value), where)
    return values


def _parsed(owner: type, name: str, text: str) -> Any:
    """Reads a value of a command line; a text that is none stays as it is."""
    wanted, optional, rule = field_types(owner)[name]
    if optional and text.lower() in ("none", "null"):
        return None
    if rule.plain is not None and text.lower() == AUTO:
        return AUTO
    with contextlib.suppress(KeyError, ValueError):
        if wanted is bool:
            return {"true": True, "false": False}[text.lower()]
        return wanted(text)
    return text
