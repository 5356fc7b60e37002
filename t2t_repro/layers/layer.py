"""Base class of the layers."""

import inspect
from collections.abc import Mapping
from typing import Any

import keras
from keras.dtype_policies import DTypePolicyMap

from t2t_repro.layers.functional import Shape


def argument_names(kind: type) -> list[str]:
    """Returns the names of a constructor's positional arguments, in order."""
    return inspect.getfullargspec(kind).args[1:]


def select_arguments(kind: type, variables: Mapping[str, Any]) -> dict[str, Any]:
    """Selects a constructor's positional arguments from its ``locals()``."""
    return {name: variables[name] for name in argument_names(kind)}


def dtype_config(layer: keras.layers.Layer) -> dict[str, Any]:
    """Serializes the dtype policy of a layer, with those of its quantized sub-layers.

    Args:
        layer: A layer, or a model, whose constructor passes its policy to all layers.

    Returns:
        Config of the layer's policy. If Keras has quantized sub-layers since the layer
        was created, it is a ``keras.dtype_policies.DTypePolicyMap`` by their paths.
    """
    policy = layer.dtype_policy
    inner = layer._flatten_layers(include_self=False)
    policies = {x.path: x.dtype_policy for x in inner if x.quantization_mode}
    if policies and not isinstance(policy, DTypePolicyMap):
        policy = DTypePolicyMap(policy.name, policies)
    return keras.dtype_policies.serialize(policy)


class Layer(keras.layers.Layer):
    """Keras layer that supports masking and reads its config from its attributes.

    Every layer can be called with `training`. Keras passes it on to the layers that a
    layer calls, down to `Dropout`.

    Subclasses store each constructor argument in an attribute of the same name or in
    `arguments`.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True

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
        values |= getattr(self, "arguments", {})
        return super().get_config() | values | {"dtype": dtype_config(self)}


class Quantizable(keras.layers.Layer):
    """Mix-in for a subclass of a Keras layer that Keras can quantize.

    It precedes Keras' layer in the list of base classes, and `Layer` follows it.
    """

    @keras.layers.Layer.dtype_policy.getter
    def dtype_policy(self) -> Any:
        """The layer's own policy, also if it was created with a map of policies.

        Keras cannot save a quantized layer whose policy is a map.
        """
        policy = self._dtype_policy
        is_map = isinstance(policy, DTypePolicyMap) and self.path
        return policy[self.path] if is_map else policy

    def quantize(self, mode: str, type_check: bool = True, config: Any = None) -> None:
        """Quantizes the weights as Keras does, which rejects subclasses by default."""
        super().quantize(mode, type_check=False, config=config)
