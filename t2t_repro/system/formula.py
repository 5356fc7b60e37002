"""A formula that a faster one can stand in for."""

import functools
from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Formula(Generic[Arguments, Result]):
    """A function, called as it is written unless another was put in its place.

    Args:
        plain: the function, written to be read.

    Attributes:
        plain: the same, always.
        used: what a call runs: `plain`, or what `t2t_repro.fast` has put there.
    """

    def __init__(self, plain: Callable[Arguments, Result]) -> None:
        functools.update_wrapper(self, plain)
        self.plain = self.used = plain

    def __call__(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        """Calls what is used."""
        return self.used(*args, **kwargs)


def formula(plain: Callable[Arguments, Result]) -> Formula[Arguments, Result]:
    """Marks a function that a faster one can stand in for."""
    return Formula(plain)
