"""Sphinx directives that generate the reference pages from the code.

`commands` uses the argument parsers, `hyperparameters` the rules of the fields, `sets`
the YAML files, and `public_name` the docstrings of a public name of the package.
"""

import dataclasses
import importlib
import re
from abc import abstractmethod
from argparse import Action
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import t2t_repro
from t2t_repro import hparams
from t2t_repro.command_line.command_list import find_commands
from t2t_repro.hparams.settings import describe_values, field_types

CONFIGS = Path(__file__).resolve().parents[1] / "configs"
# In the order in which users need them.
COMMANDS = (
    *("datagen", "train", "average", "evaluate", "translate", "score"),
    *("export", "client", "import_t2t", "import_marian", "import_opennmt"),
)
# Methods to document, in addition to the arguments of a class.
_METHODS = ("from_hparams", "call", "encode", "decode", "pairs", "replace")
_MARKUP = re.compile(r"([*`|\\]|_(?=\W|$))")
_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_ENTRY = re.compile(r"    (\w+): (.*)")


def plain(text: object) -> str:
    """Escapes reStructuredText markup."""
    return _MARKUP.sub(r"\\\1", str(text))


class _Generated(SphinxDirective):
    """Directive that is replaced by generated lines of reStructuredText."""

    @abstractmethod
    def lines(self) -> Iterator[str]:
        """Yields the generated lines."""

    def run(self) -> list[nodes.Node]:
        """Parses the generated lines."""
        text = "\n".join(self.lines())
        return self.parse_text_to_nodes(text, allow_section_headings=True)


class Commands(_Generated):
    """Directive for all commands with the help of their flags."""

    def lines(self) -> Iterator[str]:
        """Yields a section for each command."""
        others = [name for name in find_commands() if name not in COMMANDS]
        for name in (*COMMANDS, *others):
            parser = importlib.import_module(f"t2t_repro.{name}")._parser()
            program = f"python -m t2t_repro.{name}"
            yield from (name, "-" * len(name), "", f".. program:: {program}", "")
            yield from (f"``{program}``", "", plain(parser.description), "")
            # Flags that all commands have come last.
            for action in sorted(parser._actions, key=_is_common):
                if "--help" not in action.option_strings:
                    yield from _option(parser, action)


def _is_common(action: Action) -> bool:
    """Returns whether all commands have this flag."""
    return not {"--json", "--verbose"}.isdisjoint(action.option_strings)


def _option(parser: Any, action: Action) -> Iterator[str]:
    """Yields the description of a flag."""
    names = action.option_strings or [action.dest]
    value = ""
    if action.nargs != 0 and action.option_strings:
        value = f" {(action.metavar or action.dest).upper()}"
        if action.choices:
            value = f" {{{','.join(map(str, action.choices))}}}"
    formatter = parser._get_formatter()
    text = formatter._expand_help(action) if action.help else ""
    prefix = "Required: " if action.required else ""
    yield from (f".. option:: {names[0]}{value}", "", f"   {plain(prefix + text)}", "")


class HyperParameters(_Generated):
    """Directive for a table of all hyper-parameters."""

    def lines(self) -> Iterator[str]:
        """Yields a row for each field of `HParams`."""
        yield from (".. list-table::", "   :header-rows: 1", "   :widths: 22 12 40 26")
        yield from ("", *_row("name", "default", "meaning", "source of the default"))
        types = field_types(hparams.HParams)
        for field in dataclasses.fields(hparams.HParams):
            kind, _, rule = types[field.name]
            allowed = describe_values(hparams.HParams, field.name)
            default = "null" if field.default is None else field.default
            yield from _row(
                f"``{field.name}``",
                f"``{default}``".lower() if kind is bool else f"``{default}``",
                f"{plain(rule.doc)} *({plain(allowed)})*",
                plain(rule.source),
            )
        yield ""


def _row(first: str, *others: str) -> Iterator[str]:
    yield f"   * - {first}"
    for other in others:
        yield f"     - {other}"


class Sets(_Generated):
    """Directive for all sets of `configs/`: their files and non-default values."""

    def lines(self) -> Iterator[str]:
        """Yields a section for each set."""
        defaults = hparams.HParams().to_dict()
        for name in hparams.names():
            path = next(CONFIGS.rglob(f"{name}.yaml"))
            yield from (name, "-" * len(name), "", ".. code-block:: yaml", "")
            text = path.read_text(encoding="utf-8")
            yield from (f"   {line}" for line in text.splitlines())
            values = hparams.load(name).to_dict()
            changed = [
                f"``{key}: {'null' if value is None else value}``"
                for key, value in values.items()
                if value != defaults[key]
            ]
            text = ", ".join(changed) or "none"
            yield from ("", f"Values that differ from the defaults: {text}.", "")


class PublicName(_Generated):
    """Directive for a public name: a module with its members, a class or a function."""

    required_arguments = 1

    def lines(self) -> Iterator[str]:
        """Yields a section for the name."""
        name = self.arguments[0]
        title = f"t2t_repro.{name}"
        yield from ("", title, "-" * len(title), "")
        value = getattr(t2t_repro, name)
        if not isinstance(value, ModuleType):
            yield from _members(value.__module__, [value])
            return
        yield from (f".. automodule:: {value.__name__}", "")
        public = getattr(value, "__all__", None)
        yield from _members(
            value.__name__,
            [getattr(value, key) for key in public]
            if public
            else [
                member
                for key, member in vars(value).items()
                if not key.startswith("_")
                and getattr(member, "__module__", "") == value.__name__
            ],
        )


def _members(module: str, members: list[Any]) -> Iterator[str]:
    """Yields the documentation of classes and functions of a module."""
    for member in members:
        kind = "autoclass" if isinstance(member, type) else "autofunction"
        yield f".. {kind}:: {module}.{member.__name__}"
        methods = [name for name in _METHODS if name in vars(member)]
        if methods:
            yield f"   :members: {', '.join(methods)}"
        yield ""


def adapt_docstring(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Converts our docstrings to the syntax of napoleon and docutils.

    Makes `code` a literal, and a list of several named return values.
    """
    lines[:] = [_CODE.sub(lambda m: f"``{m[1].strip()}``", line) for line in lines]
    for title in ("Returns:", "Yields:"):
        if title in lines:
            start = lines.index(title) + 1
            end = next((n for n in range(start, len(lines)) if not lines[n]), None)
            lines[start:end] = _as_list(lines[start:end])


def _as_list(lines: list[str]) -> list[str]:
    """Converts two or more lines of the form `name: description` to a list."""
    entries = [_ENTRY.match(line) for line in lines]
    if sum(map(bool, entries)) < 2 or not entries[0]:
        return lines
    # Without a colon, because napoleon would treat the text before it as a type.
    listed = ["    Several values", ""]
    for line, entry in zip(lines, entries, strict=True):
        listed.append(
            f"    - **{entry[1]}**: {entry[2]}" if entry else f"      {line.strip()}"
        )
    return listed


def setup(app: Sphinx) -> dict[str, object]:
    """Registers the directives, and `adapt_docstring` before napoleon."""
    app.connect("autodoc-process-docstring", adapt_docstring, priority=400)
    app.add_directive("commands", Commands)
    app.add_directive("hyperparameters", HyperParameters)
    app.add_directive("sets", Sets)
    app.add_directive("public_name", PublicName)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
