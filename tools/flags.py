"""Flags of the tools, written as tables, and types of flags with several values."""

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Collection
from typing import Any, TypeVar

from t2t_repro.command_line import cli

Value = TypeVar("Value")
Flag = tuple[str, Any, Any, str]
"""Name, type, default and help of a flag. The default `REQUIRED` makes a flag required.
A flag of type `bool` is a switch without a value."""

REQUIRED = object()


def parser(
    documentation: str | None, *flags: Flag, json_flag: bool = True
) -> cli.ArgumentParser:
    """Returns a parser whose description is the first line of a docstring."""
    description = (documentation or "").partition("\n")[0]
    result = cli.ArgumentParser(description, json_flag)
    add_flags(result, *flags)
    return result


def add_flags(parser: ArgumentParser, *flags: Flag) -> None:
    """Adds flags to a parser."""
    for name, kind, default, text in flags:
        options: dict[str, Any] = {"type": kind, "default": default}
        if kind is bool:
            options = {"action": "store_true"}
        elif default is REQUIRED:
            options = {"type": kind, "required": True}
        parser.add_argument(f"--{name}", help=text, **options)


def several(kind: Callable[[str], Value]) -> Callable[[str], list[Value]]:
    """Returns a flag type: a list of values of type `kind`; empty for ""."""
    return lambda text: [kind(part.strip()) for part in text.split(",") if part]


def choice(known: Collection[str]) -> Callable[[str], str]:
    """Returns a flag type: one of the given names."""

    def name(text: str) -> str:
        if text not in known:
            raise ArgumentTypeError(f"must be one of {', '.join(known)}, not {text!r}")
        return text

    return name
