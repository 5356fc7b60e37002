"""What all layers of this package have in common."""

import inspect
from typing import Any

import keras

from t2t_repro.layers.functional import Shape


def arguments_of(kind: type) -> list[str]:
    """Returns the names of the arguments that a class lists, in order."""
    return inspect.getfullargspec(kind).args[1:]


class Layer(keras.layers.Layer):
    """A Keras layer that hands on masks and knows the arguments it was made with.

    Subclasses keep each argument in an attribute of its name; `get_config` reads them.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True

    def compute_output_shape(self, *shapes: Shape, **named: Shape) -> Shape:
        """Returns the shape of the output, by default that of the first input."""
        return [*shapes, *named.values()][0]

    # Traces `call`, since one shape does not tell types and attention scores.
    compute_output_spec = keras.Operation.compute_output_spec

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments that make the layer again, without its weights."""
        kinds = (kind for kind in type(self).__mro__ if issubclass(kind, Layer))
        names = {name for kind in kinds for name in inspect.signature(kind).parameters}
        # A subclass that keeps one elsewhere adds it in a `get_config` of its own.
        kept = {name: getattr(self, name) for name in names if hasattr(self, name)}
        return super().get_config() | kept
