"""Loads `.keras` files of version 0.2.0, whose layers have former class names.

In that version each option was a subclass, and the `variant` of a stack or model
named the subclasses. Keras finds weights in a file by class name. A layer is therefore
created with its former class and gets its current class after its weights are loaded.
"""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import keras

from t2t_repro.layers.add_and_norm import LayerNormalization, Residual
from t2t_repro.layers.attention import MultiHeadAttention
from t2t_repro.layers.embedding import TokenEmbedding
from t2t_repro.layers.feed_forward import FeedForward
from t2t_repro.layers.local_attention import LocalAttention
from t2t_repro.layers.relative import RelativeAttention
from t2t_repro.layers.stacks import Decoder, DecoderLayer, Encoder, EncoderLayer

OPTIONS = {
    "activation": "activation",
    "d_ff": "decoder_d_ff",
    "epsilon": "norm_epsilon",
    "start_symbol": "start_symbol",
}
"""Current names of the arguments in the layers of a `variant`."""


class _Former:
    def load_own_variables(self, store: Any) -> None:
        super().load_own_variables(store)  # type: ignore[misc]
        self.__class__ = type(self).__bases__[-1]


class _Biased(_Former):
    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Any:
        return super().from_config({**config, "use_bias": True})  # type: ignore[misc]


FORMER: dict[str, tuple[type, type]] = {
    "BiasedAttention": (_Biased, MultiHeadAttention),
    "BiasedRelativeAttention": (_Biased, RelativeAttention),
    "NeighbourhoodAttention": (_Former, LocalAttention),
    "BiasedNeighbourhoodAttention": (_Biased, LocalAttention),
    "ActivatedFeedForward": (_Former, FeedForward),
    "EpsilonNormalization": (_Former, LayerNormalization),
    "EpsilonResidual": (_Former, Residual),
    "BiasedEmbedding": (_Biased, TokenEmbedding),
    "StartEmbedding": (_Former, TokenEmbedding),
    "BiasedStartEmbedding": (_Biased, TokenEmbedding),
}
"""Base classes of each former class."""

for former_name, bases in FORMER.items():
    keras.saving.register_keras_serializable("t2t_repro")(type(former_name, bases, {}))


def accept_variant(kind: type) -> None:
    """Makes Keras accept a `variant` in the config of a stack or model class."""

    def from_config(config: dict[str, Any]) -> Any:
        layer = kind.from_config(_without_variant(config))  # type: ignore[attr-defined]
        for part, other in (config.get("variant") or {}).items():
            # In the file, layers in attributes whose names sort after `layers` are
            # stored under their class names.
            if part in ("softmax", "target_embedding") and getattr(layer, part, None):
                former = keras.saving.get_registered_object(other["class_name"])
                getattr(layer, part).__class__ = former
        return layer

    name = keras.saving.get_registered_name(kind)
    # Keras calls the `from_config` of a registered object.
    keras.saving.get_custom_objects()[name] = SimpleNamespace(from_config=from_config)


def _without_variant(config: Mapping[str, Any]) -> dict[str, Any]:
    """Converts the `variant` of a config to arguments."""
    arguments = {name: value for name, value in config.items() if name != "variant"}
    variant = config.get("variant") or {}
    if "class_name" in variant:
        variant = {"self_attention": variant}
    for part, other in variant.items():
        kind, options = other["class_name"], other["config"]
        biased = "Biased" in kind
        if part == "self_attention" and kind != "t2t_repro>BiasedAttention":
            kind = kind.replace("Biased", "").replace("Neighbourhood", "Local")
            config = {"use_bias": biased, **options}
            arguments["self_attention"] = {"class_name": kind, "config": config}
            continue
        former = keras.saving.get_registered_object(kind) or object
        if part != "decoder" and not issubclass(former, _Former):
            raise ValueError(
                f"variant {part!r}: no current option corresponds to {kind}"
            )
        if part.endswith("attention"):
            arguments["attention_bias"] = biased
        if part in ("embedding", "softmax"):
            arguments["softmax_bias"] = biased
        arguments |= {OPTIONS[name]: value for name, value in options.items()}
    return arguments


for each in (EncoderLayer, DecoderLayer, Encoder, Decoder):
    accept_variant(each)
