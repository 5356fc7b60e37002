"""Types of the tools' flags that take several values, with commas between."""

from argparse import ArgumentTypeError
from collections.abc import Callable, Collection
from typing import TypeVar

Value = TypeVar("Value")


def several(kind: Callable[[str], Value]) -> Callable[[str], list[Value]]:
    """Returns a flag's type: a list of values, each of a type; "" is none."""
    return lambda text: [kind(part.strip()) for part in text.split(",") if part]


def one_of(known: Collection[str]) -> Callable[[str], str]:
    """Returns a flag's type: one of some names."""

    def name(text: str) -> str:
        if text not in known:
            raise ArgumentTypeError(f"must be of {', '.join(known)}, not {text!r}")
        return text

    return name
