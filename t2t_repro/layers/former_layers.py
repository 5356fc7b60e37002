"""Lets Keras read what version 0.2.0 saved: `.keras` files with layers of former names.

What is an option of a layer was a class of its own then, and stacks and models had a
`variant`, which named the classes. Keras finds the weights of a file by the names of
classes, too. So a layer is made with its former class, and has today's once its weights
are read.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

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
"""What an argument of a part of a `variant` is called now."""

register = keras.saving.register_keras_serializable("t2t_repro")


class _Former:
    def load_own_variables(self, store: Any) -> None:
        super().load_own_variables(store)  # type: ignore[misc]
        self.__class__ = type(self).__bases__[-1]


class _Biased(_Former):
    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Any:
        return super().from_config({**config, "use_bias": True})  # type: ignore[misc]


@register
class BiasedAttention(_Biased, MultiHeadAttention):
    """`MultiHeadAttention` with biases."""


@register
class BiasedRelativeAttention(_Biased, RelativeAttention):
    """`RelativeAttention` with biases."""


@register
class NeighbourhoodAttention(_Former, LocalAttention):
    """`LocalAttention`."""


@register
class BiasedNeighbourhoodAttention(_Biased, LocalAttention):
    """`LocalAttention` with biases."""


@register
class ActivatedFeedForward(_Former, FeedForward):
    """`FeedForward` with an activation."""


@register
class EpsilonNormalization(_Former, LayerNormalization):
    """`LayerNormalization` with an epsilon."""


@register
class EpsilonResidual(_Former, Residual):
    """`Residual` with an epsilon."""


@register
class BiasedEmbedding(_Biased, TokenEmbedding):
    """`TokenEmbedding` with biases."""


@register
class StartEmbedding(_Former, TokenEmbedding):
    """`TokenEmbedding` with a start symbol."""


@register
class BiasedStartEmbedding(_Biased, TokenEmbedding):
    """`TokenEmbedding` with biases and a start symbol."""


class _Reader(NamedTuple):
    """What Keras finds in place of a class; it asks for nothing else."""

    from_config: Callable[[dict[str, Any]], Any]


def let_keras_read_a_variant(kind: type) -> None:
    """Lets Keras read files where a model or stack of this class has a `variant`."""

    def from_config(config: dict[str, Any]) -> Any:
        made = kind.from_config(_without_variant(config))  # type: ignore[attr-defined]
        for part, other in (config.get("variant") or {}).items():
            if part in ("softmax", "target_embedding") and getattr(made, part, None):
                former = keras.saving.get_registered_object(other["class_name"])
                getattr(made, part).__class__ = former
        return made

    name = keras.saving.get_registered_name(kind)
    keras.saving.get_custom_objects()[name] = _Reader(from_config)


def _without_variant(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns arguments with what stood in a `variant` as arguments of their own."""
    found = {name: value for name, value in config.items() if name != "variant"}
    variant = config.get("variant") or {}
    if "class_name" in variant:
        variant = {"self_attention": variant}
    for part, other in variant.items():
        kind, own = other["class_name"], other["config"]
        biased = "Biased" in kind
        if part == "self_attention" and own:
            kind = kind.replace("Biased", "").replace("Neighbourhood", "Local")
            config = {"use_bias": biased, **own}
            found["self_attention"] = {"class_name": kind, "config": config}
            continue
        if part.endswith("attention"):
            found["attention_bias"] = biased
        if part in ("embedding", "softmax"):
            found["softmax_bias"] = biased
        found |= {OPTIONS[name]: value for name, value in own.items()}
    return found


for each in (EncoderLayer, DecoderLayer, Encoder, Decoder):
    let_keras_read_a_variant(each)
