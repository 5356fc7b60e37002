"""Functions that have an optimized implementation."""

import functools
from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Dispatch(Generic[Arguments, Result]):
    """A function whose optimized implementation can be switched on and off.

    Args:
        reference: the reference implementation.

    Attributes:
        reference: the reference implementation.
        implementation: the function that a call runs: the reference, or the one that
            `t2t_repro.fast.install` has set.
    """

    def __init__(self, reference: Callable[Arguments, Result]) -> None:
        functools.update_wrapper(self, reference)
        self.reference = self.implementation = reference

    def __call__(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        """Calls the implementation."""
        return self.implementation(*args, **kwargs)


def dispatched(reference: Callable[Arguments, Result]) -> Dispatch[Arguments, Result]:
    """Marks a function that can have an optimized implementation."""
    return Dispatch(reference)
