"""List of the hyper-parameters with their defaults, bounds and meanings."""

import dataclasses
import textwrap

from t2t_repro.hparams.fields import HParams
from t2t_repro.hparams.settings import describe_values, get_rule, suggest_similar
from t2t_repro.system.errors import UserError


def describe_hparams(name: str | None = None) -> str:
    """Describes a hyper-parameter, or all of them, in lines of up to 88 characters.

    Raises:
        UserError: No hyper-parameter has this name.
    """
    fields = {field.name: field for field in dataclasses.fields(HParams)}
    if name is not None and name not in fields:
        hint = suggest_similar(name, fields) or "; omit it for a list of all names"
        raise UserError(f"no hyper-parameter is called {name!r}{hint}")
    selected = fields.values() if name is None else [fields[name]]
    return "\n".join(map(_describe, selected))


def _describe(field: dataclasses.Field[object]) -> str:
    rule = get_rule(field)
    default = "null" if field.default is None else field.default
    if isinstance(default, bool):
        default = str(default).lower()
    values = describe_values(HParams, field.name)
    meaning = textwrap.fill(
        f"{rule.doc} ({rule.source})",
        width=88,
        initial_indent="    ",
        subsequent_indent="    ",
    )
    return f"{field.name}={default} ({values})\n{meaning}"
