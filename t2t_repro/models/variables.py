"""Variables of a model by name."""

import fnmatch
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import keras
import tensorflow as tf

from t2t_repro.layers.layer import Layer
from t2t_repro.system.errors import UserError


def named_variables(model: keras.Model) -> dict[str, keras.Variable]:
    """Returns the model's variables by path, without the name of the model.

    Raises:
        ValueError: Two variables have the same path, or the model has none.
    """
    prefix = f"{model.name}/"
    named = {v.path.removeprefix(prefix): v for v in model.trainable_variables}
    if not named or len(named) != len(model.trainable_variables):
        raise ValueError(f"{model.name} must have variables, with distinct paths")
    return named


def find_frozen(names: Collection[str], patterns: str | None) -> set[str]:
    """Returns the names of the weights that match a pattern.

    Args:
        names: Names of all weights.
        patterns: Value of the hyper-parameter `freeze`.

    Raises:
        UserError: A pattern matches no name, or all names match.
    """
    frozen: set[str] = set()
    for pattern in (patterns or "").split():
        found = fnmatch.filter(names, pattern)
        if not found:
            parts = sorted({name.partition("/")[0] for name in names})
            raise UserError(
                f"freeze: no weight is named {pattern}; the names begin with "
                f"{', '.join(f'{part}/' for part in parts)}"
            )
        frozen.update(found)
    if len(frozen) == len(names):
        raise UserError(f"freeze={patterns!r} matches all weights; none is trained")
    return frozen


@contextmanager
def skip_initialization() -> Iterator[None]:
    """Lets models that are built in this context start with arbitrary weights.

    Drawing random numbers takes most of the time of building a model, in vain if its
    weights are read from a file afterwards.
    """

    def add_empty(layer: Layer, shape: Any, _: Any = None, **kwargs: Any) -> Any:
        return keras.layers.Layer.add_weight(
            layer, shape, **kwargs | {"initializer": _empty}
        )

    # The layers are the reference implementation, which a reader should find without
    # this switch.
    Layer.add_weight = add_empty  # type: ignore[method-assign]
    try:
        yield
    finally:
        del Layer.add_weight


def _empty(shape: tuple[int, ...], dtype: Any = None) -> tf.Tensor:
    """Allocates memory that takes no space until it is written."""
    return tf.raw_ops.Empty(shape=shape, dtype=tf.as_dtype(dtype), init=False)
