"""Functions that have an optimized implementation."""

import functools
from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Dispatch(Generic[Arguments, Result]):
    """Function whose optimized implementation can be switched on and off.

    Args:
        reference: Reference implementation.

    Attributes:
        reference: Reference implementation.
        implementation: Function that a call runs: the reference implementation or the
            optimized one set by `t2t_repro.fast.install`.
    """

    def __init__(self, reference: Callable[Arguments, Result]) -> None:
        functools.update_wrapper(self, reference)
        self.reference = self.implementation = reference

    def __call__(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        """Calls the current implementation."""
        return self.implementation(*args, **kwargs)


def dispatched(reference: Callable[Arguments, Result]) -> Dispatch[Arguments, Result]:
    """Marks a function that can have an optimized implementation."""
    return Dispatch(reference)
