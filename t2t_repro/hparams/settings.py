"""Validated settings: dataclass fields with rules for their values.

A misspelt setting that is silently ignored would waste a training run, so unknown names
and invalid values raise UserError. This module is independent of the Transformer;
`fields.py` declares the fields.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import functools
import math
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from t2t_repro.system.errors import UserError

AUTO = "auto"
"""Value that is replaced according to the device when training starts."""

INT32_MAX = 2**31 - 1
"""Maximum of integer settings, because the TensorFlow graphs use int32."""


_TYPE_NAMES = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a string",
}


@dataclasses.dataclass(frozen=True)
class Rule:
    """Meaning and allowed values of a field.

    Attributes:
        doc: Description with the unit, one sentence or noun phrase.
        source: Source of the default (section of the paper, tensor2tensor, own choice).
        minimum: Smallest allowed number; None for no limit.
        maximum: Largest allowed number. Default: `INT32_MAX` for integers.
        below: Exclusive upper bound on a number. Default: no limit.
        choices: Allowed strings. Default: any.
        plain: CPU default of a field that may be "auto"; files written before "auto"
            existed contain this value. Default: the field cannot be "auto".
        changes: Effect of a changed value on an existing model. "function": the
            weights become invalid; "training": training continues only if the user
            accepts the change; "nothing": no effect on the weights.
    """

    doc: str
    source: str
    minimum: float | None = 0
    maximum: float | None = None
    below: float | None = None
    choices: tuple[str, ...] = ()
    plain: Any = None
    changes: Literal["function", "training", "nothing"] = "training"

    def complaint(self, value: object) -> str | None:
        """Returns an error message for a value of the correct type, or None."""
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
    """Declares a dataclass field with a `Rule`; typed Any like `dataclasses.field`."""
    rule = Rule(doc, source, **others)
    return dataclasses.field(default=default, metadata={"rule": rule})


def get_rule(field: dataclasses.Field[Any]) -> Rule:
    """Returns the rule of a field declared by `setting`."""
    rule: Rule = field.metadata["rule"]
    return rule


@functools.cache
def field_types(owner: type) -> dict[str, tuple[type, bool, Rule]]:
    """Returns (type, whether None is allowed, rule) of each field, by name.

    `owner` is a dataclass with fields of type int, float, bool or str, which may be
    optional. A field with a `Rule.plain` may also be `AUTO`.
    """
    fields, hints = {}, typing.get_type_hints(owner)
    for field in dataclasses.fields(owner):
        members = typing.get_args(hints[field.name]) or (hints[field.name],)
        fields[field.name] = members[0], types.NoneType in members, get_rule(field)
    return fields


def describe_values(owner: type, name: str) -> str:
    """Describes the values that a field allows, such as "int from 1 or auto"."""
    kind, optional, rule = field_types(owner)[name]
    allowed = kind.__name__
    if rule.choices:
        allowed = " or ".join(rule.choices)
    elif kind in (int, float):
        if rule.minimum is not None:
            allowed += f" from {rule.minimum:g}"
        if rule.maximum is not None:
            allowed += f" to {rule.maximum:,g}"
        if rule.below is not None:
            allowed += f", below {rule.below:g}"
    allowed += " or null" * optional
    return allowed + f" or {AUTO}" * (rule.plain is not None)


def suggest_similar(name: str, candidates: Iterable[str]) -> str:
    """Returns '; did you mean X?' with the most similar candidate, or ''."""
    near = difflib.get_close_matches(name, list(candidates), n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else ""


def validate(owner: type, values: Mapping[Any, Any], where: str) -> dict[str, Any]:
    """Validates values by name of field; raises UserError that lists all mistakes.

    Args:
        owner: Dataclass. Its `other_names`, if any, maps names of other systems to
            fields.
        values: Values by name. Other keys than names of fields are mistakes.
        where: File or flag in the message.

    Returns:
        The values. An int is converted for a float field; no other type is.
    """
    fields, results, invalid, unknown = field_types(owner), {}, [], []
    for name, value in values.items():
        if name not in fields:
            unknown.append(_unknown(owner, name))
            continue
        is_whole_float = fields[name][0] is float and type(value) is int
        results[name] = float(value) if is_whole_float else value
        if complaint := _complaint(owner, name, results[name]):
            invalid.append(complaint)
    if mistakes := [*invalid, *filter(None, [" ".join(unknown)])]:
        raise UserError(f"{where}: {'; '.join(mistakes)}")
    return results


def _unknown(owner: type, name: object) -> str:
    """Returns an error message for a name that is not a field; suggests another."""
    fields, others = field_types(owner), getattr(owner, "other_names", {})
    hint = suggest_similar(str(name), fields)
    if name in others:
        hint = f"; did you mean {others[name]!r}?"
    hint = hint or f"; choose from {', '.join(fields)}"
    return f"unknown hyper-parameter {name!r}{hint}"


def _complaint(owner: type, name: str, value: object) -> str | None:
    """Returns an error message for a value of field `name`, or None."""
    kind, optional, rule = field_types(owner)[name]
    has_auto = rule.plain is not None
    if (value is None and optional) or (value == AUTO and has_auto):
        return None
    if type(value) is not kind:
        return (
            f"{name} must be {_TYPE_NAMES[kind]}{' or null' * optional}"
            f"{f' or {AUTO}' * has_auto}, not {value!r} ({type(value).__name__})"
        )
    complaint = rule.complaint(value)
    return f"{name}={value!r} {complaint}" if complaint else None


def parse_overrides(owner: type, text: str, where: str) -> dict[str, Any]:
    """Parses 'key=value,key=value' into validated settings.

    Raises UserError for a part without '=' or without text, an unknown or repeated
    key, or an invalid value.
    """
    texts: dict[str, str] = {}
    for part in (part.strip() for part in text.split(",")):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not part:
            raise UserError(f"{where}: key=value is missing before or after a comma")
        if not equals:
            raise UserError(f"{where}: {part!r} is not of the form key=value")
        if key in texts:
            raise UserError(f"{where}: {key} is given twice")
        texts[key] = value
    fields = field_types(owner)
    values = {
        key: _parse_value(owner, key, value) if key in fields else value
        for key, value in texts.items()
    }
    return validate(owner, values, where)


def _parse_value(owner: type, name: str, text: str) -> Any:
    """Parses a value from the command line; returns invalid text unchanged."""
    kind, optional, rule = field_types(owner)[name]
    if optional and text.lower() in ("none", "null"):
        return None
    if rule.plain is not None and text.lower() == AUTO:
        return AUTO
    with contextlib.suppress(KeyError, ValueError):
        if kind is bool:
            return {"true": True, "false": False}[text.lower()]
        return kind(text)
    return text
