"""Named hyper-parameter sets: YAML files that write down what differs.

A set is a file in `configs/`. It may name one parent, `base: NAME`, which has no
parent itself: whoever reads a set opens at most two files. What neither mentions
keeps the default, the paper's base model.
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
    check_keys,
    checked,
    did_you_mean,
    parse_overrides,
)
from t2t_repro.system.atomic_file import read_lines
from t2t_repro.system.errors import UserError

_PARENT = "base"
_SPEC = re.compile(r"(?P<set>.*?\.ya?ml|[^,]*)(?:,(?P<overrides>.*))?", re.DOTALL)


def names() -> list[str]:
    """Returns the names of all sets in `configs/`, sorted."""
    return sorted(path.stem for path in _configs().glob("*.yaml"))


def load(spec: str) -> HParams:
    """Returns the set that a command line asks for, such as `big,d_k=none`.

    `spec` is a set's name or a path that ends in `.yaml`, then any overrides. An
    unknown set or key (the nearest is named), a wrong type, a value out of range, or a
    parent that has a parent is a UserError.
    """
    match = _SPEC.fullmatch(spec.strip())
    assert match is not None  # The pattern's second branch takes any text.
    name, overrides = match["set"].strip(), match["overrides"] or ""
    is_path = name.endswith((".yaml", ".yml"))
    values = _resolved(Path(name) if is_path else _path_of(name, "--hparams"))
    values |= parse_overrides(HParams, overrides, "--hparams")
    return HParams(**values)


def read(path: str | os.PathLike[str]) -> HParams:
    """Returns the resolved set that `HParams.save` wrote; UserError if it cannot.

    A missing key keeps its default, or what that was before it could be "auto", so that
    a model directory outlives the addition of a hyper-parameter.
    """
    return HParams(**(CPU_DEFAULTS | _values(Path(path))))


def _configs() -> Path:
    """Finds the folder of sets: inside the installed package, or beside it."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "configs"
    return installed if installed.is_dir() else package.parent / "configs"


def _path_of(name: str, where: str) -> Path:
    """Returns the file of a named set; raises UserError for an unknown name."""
    if name not in names():
        hint = did_you_mean(name, names()) or f"; there are {', '.join(names())}"
        raise UserError(f"{where}: no hyper-parameter set is called {name!r}{hint}")
    return _configs() / f"{name}.yaml"


def _resolved(path: Path) -> dict[str, Any]:
    """Returns the values of a set over those of its parent, if it names one."""
    own = _mapping(path)
    if _PARENT not in own:
        return _values(path)
    parent_name = own[_PARENT]
    if not isinstance(parent_name, str):
        raise UserError(f"{path}: {_PARENT} must name a set, not {parent_name!r}")
    parent = _path_of(parent_name, str(path))
    if _PARENT in _mapping(parent):
        raise UserError(
            f"{path}: its {_PARENT}, {parent_name!r}, has a {_PARENT} itself; only "
            "one level is allowed"
        )
    return _values(parent) | _values(path)


def _values(path: Path) -> dict[str, Any]:
    """Returns a file's own settings, each checked by its rule, less the parent."""
    values = _mapping(path)
    values.pop(_PARENT, None)
    check_keys(HParams, values, str(path))
    return {
        key: checked(HParams, key, value, str(path)) for key, value in values.items()
    }


def _mapping(path: Path) -> dict[str, Any]:
    """Reads a YAML file that holds one mapping of names to scalars."""
    try:
        found = yaml.load("\n".join(read_lines(path)), _StrictLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = " ".join(
            (getattr(error, "problem", None) or "cannot be read").split()
        )
        raise UserError(f"{path}{line}: not valid YAML: {problem}") from None
    except (ValueError, RecursionError) as error:
        # A date that is none, a number of thousands of digits, a thousand brackets.
        raise UserError(f"{path}: not valid YAML: {error}") from None
    if not isinstance(found, dict):
        raise UserError(f"{path}: must hold lines of the form 'key: value'")
    return found


class _StrictLoader(yaml.SafeLoader):
    """YAML that refuses a key given twice, and references, and reads 1e-9 as a number.

    Anchors let a few lines stand for gigabytes; a set of hyper-parameters needs none.
    """

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Builds a node, refusing references to another."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.composer.ComposerError(
                problem="a reference (*) is not allowed here",
                problem_mark=self.peek_event().start_mark,
            )
        return super().compose_node(parent, index)

    def construct_mapping(
        self, node: yaml.MappingNode, deep: bool = False
    ) -> dict[Hashable, Any]:
        """Builds a mapping, refusing repeated keys."""
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if str(key_node.value) in seen:
                raise yaml.constructor.ConstructorError(
                    problem=f"{key_node.value!s:.80} is given twice",
                    problem_mark=key_node.start_mark,
                )
            seen.add(str(key_node.value))
        return super().construct_mapping(node, deep=deep)


# YAML 1.1 wants a point and a sign in 1.0e-9 and takes 1e-9 for a word.
_StrictLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+\Z"),
    list("-+0123456789"),
)
