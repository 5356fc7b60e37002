"""What all layers of this package have in common."""

import inspect
from typing import Any, TypeAlias

import keras

from t2t_repro.layers.functional import Shape

Variant: TypeAlias = dict[str, Any] | None
"""Other parts than the paper's, by name, as `EncoderLayer` describes them."""

PARTS = (
    *("embedding", "input_embedding", "target_embedding", "softmax", "target_space"),
    *("input_position", "target_position", "input_dropout", "target_dropout"),
    *("encoder", "decoder", "final_norm", "self_attention", "self_attention_residual"),
    *("cross_attention", "cross_attention_residual"),
    *("feed_forward", "feed_forward_residual"),
)
"""The names of the parts of a model and of its layers, whichever it has of them."""


def made(variant: Variant, name: str, kind: type, /, *args: Any, **config: Any) -> Any:
    """Makes a part of a model: the paper's, or what a variant has in its place.

    Args:
        variant: the other parts.
        name: of the part.
        kind: the class of the paper's.
        *args: what either is made with.
        **config: the same, by name.

    Raises:
        ValueError: the variant names what is no part, or is not written as layers are,
            or no layer of its class is registered.
    """
    others = variant or {}
    if "class_name" in others:
        others = {"self_attention": others}
    for part, other in others.items():
        if part not in PARTS:
            raise ValueError(f"variant {part!r}: use one of {', '.join(PARTS)}")
        if not isinstance(other, dict) or other.keys() != {"class_name", "config"}:
            raise ValueError(f"variant {part!r}: needs a class_name and a config alone")
    if name in others:
        other = others[name]
        class_name, own = other["class_name"], other["config"]
        kind = keras.saving.get_registered_object(class_name)
        if kind is None:
            raise ValueError(f"variant {class_name!r}: no such layer is registered")
        config |= own
    return kind(*args, name=name, **config)


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

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """Traces `call`, since one shape does not tell types and attention scores."""
        return keras.Operation.compute_output_spec(self, *args, **kwargs)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments that make the layer again, without its weights."""
        named = {
            parameter.name
            for kind in type(self).__mro__
            if issubclass(kind, Layer)
            for parameter in inspect.signature(kind).parameters.values()
            if parameter.kind is not parameter.VAR_KEYWORD
        }
        # A subclass that keeps one elsewhere adds it in a `get_config` of its own.
        kept = {name: getattr(self, name) for name in named if hasattr(self, name)}
        return super().get_config() | kept
