"""Base class of the layers."""

import inspect
from collections.abc import Mapping
from typing import Any

import keras

from t2t_repro.layers.functional import Shape


def argument_names(kind: type) -> list[str]:
    """Returns the names of a constructor's positional arguments, in order."""
    return inspect.getfullargspec(kind).args[1:]


def select_arguments(kind: type, variables: Mapping[str, Any]) -> dict[str, Any]:
    """Selects a constructor's positional arguments from its ``locals()``."""
    return {name: variables[name] for name in argument_names(kind)}


class Layer(keras.layers.Layer):
    """Keras layer that supports masking and reads its config from its attributes.

    Layers reject Keras' quantization, because Keras would skip them.

    Every layer can be called with `training`. Keras passes it on to the layers that a
    layer calls, down to `Dropout`.

    Subclasses store each constructor argument in an attribute of the same name or in
    `arguments`.

    Raises:
        ValueError: The dtype policy is one for quantized layers.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        if getattr(self.dtype_policy, "quantization_mode", None):
            Layer.quantize(self)  # Keras has wrapped `self.quantize`.

    def quantize(self, *_: object, **__: object) -> None:
        """Raises ValueError, because Keras would skip the layer."""
        raise ValueError(
            f"{type(self).__name__} does not support quantize; load a trained model "
            'with t2t_repro.load(..., precision="int8")'
        )

    def compute_output_shape(self, *shapes: Shape, **named: Shape) -> Shape:
        """Returns the output shape, by default that of the first input."""
        return [*shapes, *named.values()][0]

    # Keras would infer the output from `compute_output_shape`, which lacks the dtype
    # and the shape of returned attention scores. This traces `call` instead.
    compute_output_spec = keras.Operation.compute_output_spec

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments for `from_config`."""
        classes = (cls for cls in type(self).__mro__ if issubclass(cls, Layer))
        names = {name for cls in classes for name in inspect.signature(cls).parameters}
        values = {name: getattr(self, name) for name in names if hasattr(self, name)}
        return super().get_config() | values | getattr(self, "arguments", {})
