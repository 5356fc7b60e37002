"""What stands in for the product of single layers, in 8 bits or watched.

A matrix is known by the variables that it lies in; several are multiplied by the same
rows side by side.
"""

import contextlib
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence

import keras

from t2t_repro.layers.functional import Tensor

Matrices = tuple[int, ...]
"""The identities of the variables of a matrix, or of several side by side."""

Product = Callable[[Tensor], Tensor]
"""From rows, float (rows, channels), to their product, the bias of the layer added.

What is rectified between two products may be uint8 (see `eight_bits`)."""

_products: dict[Matrices, Product] = {}


def matrices(variables: Sequence[keras.Variable]) -> Matrices:
    """Returns what a matrix, or several side by side, are known by."""
    return tuple(map(id, variables))


def stand_in_for(*variables: keras.Variable) -> Product | None:
    """Returns what stands in for the product with matrices side by side."""
    return _products.get(matrices(variables))


def are_there() -> bool:
    """Whether something stands in for a product of any model."""
    return bool(_products)


@contextlib.contextmanager
def standing_in(products: Mapping[Matrices, Product]) -> Iterator[None]:
    """Lets products stand in for what is traced in this context."""
    _products.update(products)
    try:
        yield
    finally:
        _forget(products)


def stand_in(model: keras.Model, products: Mapping[Matrices, Product]) -> None:
    """Lets products stand in for those of a model's layers as long as it is there."""
    _products.update(products)
    weakref.finalize(model, _forget, list(products))


def _forget(keys: Mapping[Matrices, Product] | Sequence[Matrices]) -> None:
    for key in keys:
        _products.pop(key, None)
