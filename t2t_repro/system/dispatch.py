"""A formula that a faster one can stand in for."""

import functools
from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Dispatch(Generic[Arguments, Result]):
    """A function, called as it is written unless another was put in its place.

    Args:
        reference: the function, written to be read.

    Attributes:
        reference: the same, always.
        implementation: the function that a call runs: `reference`, or the one that
            `t2t_repro.fast` has installed.
    """

    def __init__(self, reference: Callable[Arguments, Result]) -> None:
        functools.update_wrapper(self, reference)
        self.reference = self.implementation = reference

    def __call__(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        """Calls what is used."""
        return self.implementation(*args, **kwargs)


def dispatched(reference: Callable[Arguments, Result]) -> Dispatch[Arguments, Result]:
    """Marks a function that a faster one can stand in for."""
    return Dispatch(reference)
