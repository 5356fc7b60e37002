"""Named hyper-parameter sets: YAML files in `configs/`.

A set may extend one parent, `base: NAME`, which must not have a parent. Fields missing
from both files keep their defaults, the paper's base model.
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from t2t_repro.hparams.fields import CPU_DEFAULTS, HParams
from t2t_repro.hparams.settings import (
    parse_overrides,
    suggest_similar,
    validate,
)
from t2t_repro.system.atomic_file import read_lines
from t2t_repro.system.errors import UserError

_PARENT = "base"
_SPEC = re.compile(r"(?P<set>.*?\.ya?ml|[^,]*)(?:,(?P<overrides>.*))?", re.DOTALL)


def names() -> list[str]:
    """Returns the sorted names of all sets in `configs/`."""
    return sorted(path.stem for path in _configs().glob("*.yaml"))


def load(spec: str, where: str = "hparams") -> HParams:
    """Loads a set with overrides, such as `big,d_k=none`.

    Args:
        spec: Name of a set or path that ends in `.yaml`, optionally followed by
            `,key=value` for each override.
        where: Name of the argument or flag in messages.

    Raises:
        UserError: If the set or a key is unknown, a value is invalid, or the parent has
            a parent.
    """
    return HParams(**load_given(spec, where))


def load_given(spec: str, where: str = "hparams") -> dict[str, Any]:
    """Returns the values that a set, its parent and the overrides give; see `load`."""
    name, overrides = split_spec(spec)
    is_path = name.endswith((".yaml", ".yml"))
    values = _resolve(Path(name) if is_path else _find_path(name, where))
    if overrides is not None:
        values |= parse_overrides(HParams, overrides, where)
    return values


def split_spec(spec: str) -> tuple[str, str | None]:
    """Splits the argument of `load` into its set and overrides; None for none."""
    match = _SPEC.fullmatch(spec.strip())
    assert match is not None  # The second alternative of the pattern matches any text.
    return match["set"].strip(), match["overrides"]


def read(path: str | os.PathLike[str]) -> HParams:
    """Reads a set written by `HParams.save`; raises UserError if it is invalid.

    Keys that did not exist when the file was written get their defaults; for keys that
    may be "auto" now, these are the CPU defaults, which applied at that time.
    """
    return HParams(**(CPU_DEFAULTS | _values(Path(path))))


def _configs() -> Path:
    """Returns the folder of sets, in an installed package or in the repository."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "configs"
    return installed if installed.is_dir() else package.parent / "configs"


def _find_path(name: str, where: str) -> Path:
    """Returns the path of a named set; raises UserError for an unknown name."""
    if name not in names():
        hint = suggest_similar(name, names()) or f"; choose from {', '.join(names())}"
        raise UserError(f"{where}: no hyper-parameter set is called {name!r}{hint}")
    return _configs() / f"{name}.yaml"


def _resolve(path: Path) -> dict[str, Any]:
    """Returns the values of a set, merged with those of its parent if it has one."""
    own = _mapping(path)
    if _PARENT not in own:
        return _values(path)
    parent = _find_path(str(own[_PARENT]), f"{path}: {_PARENT}")
    if _PARENT in _mapping(parent):
        raise UserError(
            f"{path}: the set in {_PARENT}, {parent.stem!r}, also has a {_PARENT}; "
            "only one level is allowed"
        )
    return _values(parent) | _values(path)


def _values(path: Path) -> dict[str, Any]:
    """Returns the validated values in a file, without the name of the parent."""
    values = _mapping(path)
    values.pop(_PARENT, None)
    return validate(HParams, values, str(path))


def _mapping(path: Path) -> dict[str, Any]:
    """Reads a YAML file that contains one mapping of names to scalars."""
    try:
        values = yaml.load("\n".join(read_lines(path)), _StrictLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = " ".join(
            (getattr(error, "problem", None) or "cannot be read").split()
        )
        raise UserError(f"{path}{line}: not valid YAML: {problem}") from None
    except (ValueError, RecursionError) as error:
        # For example, an impossible date (ValueError), a number with thousands of
        # digits (ValueError) or a thousand nested brackets (RecursionError).
        raise UserError(f"{path}: not valid YAML: {error}") from None
    if not isinstance(values, dict):
        raise UserError(f"{path}: must contain lines of the form 'key: value'")
    return values


class _StrictLoader(yaml.SafeLoader):
    """YAML loader that rejects repeated keys and references and parses 1e-9 as float.

    With references, a few lines could expand to gigabytes.
    """

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Builds a node; rejects references."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.composer.ComposerError(
                problem="a reference (*) is not allowed here",
                problem_mark=self.peek_event().start_mark,
            )
        return super().compose_node(parent, index)

    def construct_mapping(
        self, node: yaml.MappingNode, deep: bool = False
    ) -> dict[Hashable, Any]:
        """Builds a mapping; rejects repeated keys."""
        keys: set[Any] = set()
        for key_node, _ in node.value:
            if str(key_node.value) in keys:
                raise yaml.constructor.ConstructorError(
                    problem=f"{key_node.value!s:.80} is given twice",
                    problem_mark=key_node.start_mark,
                )
            keys.add(str(key_node.value))
        return super().construct_mapping(node, deep=deep)


# YAML 1.1 requires a decimal point and a sign, as in 1.0e-9; 1e-9 would be a string.
_StrictLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+\Z"),
    list("-+0123456789"),
)
