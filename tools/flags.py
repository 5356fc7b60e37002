"""Types of flags that take several values, separated by commas."""

from argparse import ArgumentTypeError
from collections.abc import Callable, Collection
from typing import TypeVar

Value = TypeVar("Value")


def several(kind: Callable[[str], Value]) -> Callable[[str], list[Value]]:
    """Returns a flag type: a list of values of type `kind`; empty for ""."""
    return lambda text: [kind(part.strip()) for part in text.split(",") if part]


def one_of(known: Collection[str]) -> Callable[[str], str]:
    """Returns a flag type: one of the given names."""

    def name(text: str) -> str:
        if text not in known:
            raise ArgumentTypeError(f"must be one of {', '.join(known)}, not {text!r}")
        return text

    return name
