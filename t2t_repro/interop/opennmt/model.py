"""An OpenNMT-tf Transformer by our names (opennmt/models/transformer.py)."""

from typing import Any

import numpy as np

from t2t_repro.interop.marian.model import UNKNOWN, Arrays, Vocabulary, in_order
from t2t_repro.interop.opennmt.config import START
from t2t_repro.interop.opennmt.description import Description
from t2t_repro.interop.opennmt.variables import Variables
from t2t_repro.layers.embedding import RULED_OUT
from t2t_repro.system.errors import UserError

NORM_EPSILON = 1e-3
"""Keras' default for LayerNormalization, which OpenNMT-tf does not change."""

_SOURCE = "examples_inputter/features_inputter/embedding"
_TARGET = "examples_inputter/labels_inputter/embedding"
_OUTPUT = "decoder/output_layer"
_PROJECTIONS = (
    *(("query", "queries"), ("key", "keys")),
    *(("value", "values"), ("output", "output")),
)


def read_variables(
    variables: Variables,
    description: Description,
    source: Vocabulary,
    target: Vocabulary | None,
) -> tuple[dict[str, Any], Arrays]:
    """Takes every variable of the model: its hyper-parameters and weights.

    The weights are float32 and by our names, rows of tables in our order. UserError:
    one is missing, of another shape, or one too many, or the description or a
    vocabulary is of another model.
    """
    reader = _Reader(variables, description)
    weights = reader.layers() | reader.tables(source, target or source)
    variables.refuse_left()
    hparams = reader.hparams | {
        "norm_epsilon": NORM_EPSILON,
        "scale_embeddings": True,
        "softmax_bias": True,
        "target_space_embedding": False,
        "start_symbol": (target or source).ours.index(START),
        "tokenizer": "marian",
        "vocab_size": len(source.ours),
    }
    return hparams, weights


class _Reader:
    """Reads the variables of one model."""

    def __init__(self, variables: Variables, description: Description) -> None:
        self._variables = variables
        shape = variables.shape(_SOURCE)
        if shape is None or len(shape) != 2:
            raise UserError(
                f"{variables.prefix} has no {_SOURCE}; models that read no words, or "
                "several sources, are not supported here"
            )
        self._d_model = shape[1]
        self._depths = [self._count(side) for side in ("encoder", "decoder")]
        for side, depth in zip(("encoder", "decoder"), self._depths, strict=True):
            if not depth:
                raise UserError(
                    f"{variables.prefix} has no {side}/layers/0; RNNs and other models "
                    "than the Transformer are not supported here"
                )
        self._norm = self._norm_order()
        first = "encoder/layers/0/self_attention/layer"
        self._far = self._relative(first)
        self.hparams = description.hparams() | {
            "d_model": self._d_model,
            "d_ff": self._width("encoder"),
            "decoder_d_ff": self._width("decoder"),
            "num_layers": self._depths[0],
            "num_decoder_layers": self._depths[1],
            "norm": self._norm,
            "attention_bias": variables.key(f"{first}/linear_keys/bias") is not None,
            "max_relative_position": self._far,
        }
        self._check(description)

    def _count(self, side: str) -> int:
        count = 0
        while self._variables.shape(f"{side}/layers/{count}/ffn/layer/inner/kernel"):
            count += 1
        return count

    def _width(self, side: str) -> int:
        shape = self._variables.shape(f"{side}/layers/0/ffn/layer/inner/kernel")
        return (shape or (0,))[-1]

    def _norm_order(self) -> str:
        is_pre = self._variables.key("encoder/layer_norm/gamma") is not None
        return "pre" if is_pre else "post"

    def _relative(self, attention: str) -> int:
        shape = self._variables.shape(f"{attention}/relative_position_keys")
        return 0 if shape is None else (shape[0] - 1) // 2

    def _check(self, description: Description) -> None:
        """Raises UserError where the description is of another model."""
        found = self.hparams
        layers = description["num_layers"]
        pairs = {
            "num_units": (description["num_units"], self._d_model),
            "ffn_inner_dim": (description["ffn_inner_dim"], found["d_ff"]),
            "num_layers": (
                [*layers] if isinstance(layers, list | tuple) else [layers] * 2,
                self._depths,
            ),
            "pre_norm": (description["pre_norm"], self._norm == "pre"),
            "maximum_relative_position": (
                description["maximum_relative_position"] or 0,
                self._far,
            ),
        }
        for name, (said, is_) in pairs.items():
            if said != is_:
                raise UserError(
                    f"{description.where} says {name}={said}, but in "
                    f"{self._variables.prefix} it is {is_}; give --model, the "
                    "description of this model"
                )
        heads = found["num_heads"]
        if self._d_model % heads:
            raise UserError(
                f"{description.where}: num_heads={heads} does not divide "
                f"{self._d_model}"
            )

    def layers(self) -> Arrays:
        """Takes the variables of both stacks."""
        found: Arrays = {}
        for side, depth in zip(("encoder", "decoder"), self._depths, strict=True):
            for number in range(depth):
                ours, theirs = f"{side}/layer_{number}", f"{side}/layers/{number}"
                found |= self._attention(f"{ours}/self_attention", theirs, self._far)
                if side == "decoder":
                    found |= self._attention(f"{ours}/cross_attention", theirs, 0)
                found |= self._feed_forward(ours, theirs, self._width(side))
            if self._norm == "pre":
                found |= self._normalization(f"{side}/final_norm", f"{side}/layer_norm")
        return found

    def _attention(self, ours: str, layer: str, far: int) -> Arrays:
        kind = "self_attention" if ours.endswith("self_attention") else "attention/0"
        theirs, d_model = f"{layer}/{kind}", self._d_model
        found: Arrays = {}
        for our_part, part in _PROJECTIONS:
            found |= self._linear(
                f"{ours}/{our_part}",
                f"{theirs}/layer/linear_{part}",
                (d_model, d_model),
                self.hparams["attention_bias"],
            )
        if far:
            shape = 2 * far + 1, d_model // self.hparams["num_heads"]
            for part in ("keys", "values"):
                found[f"{ours}/relative_{part}/table"] = self._variables.take(
                    f"{theirs}/layer/relative_position_{part}", *shape
                )
        return found | self._residual(ours, theirs)

    def _feed_forward(self, ours: str, layer: str, width: int) -> Arrays:
        sizes = self._d_model, width, self._d_model
        found: Arrays = {}
        for n, (our_part, part) in enumerate(
            (("hidden", "inner"), ("output", "outer"))
        ):
            name = f"{ours}/feed_forward/{our_part}"
            theirs = f"{layer}/ffn/layer/{part}"
            found |= self._linear(name, theirs, sizes[n : n + 2], True)
        return found | self._residual(f"{ours}/feed_forward", f"{layer}/ffn")

    def _linear(
        self, ours: str, theirs: str, shape: tuple[int, ...], has_bias: bool
    ) -> Arrays:
        found = {f"{ours}/kernel": self._variables.take(f"{theirs}/kernel", *shape)}
        if has_bias:
            bias = self._variables.take(f"{theirs}/bias", shape[1])
            found[f"{ours}/bias"] = bias
        return found

    def _residual(self, ours: str, theirs: str) -> Arrays:
        place = "input" if self._norm == "pre" else "output"
        return self._normalization(
            f"{ours}_residual/layer_norm", f"{theirs}/{place}_layer_norm"
        )

    def _normalization(self, ours: str, theirs: str) -> Arrays:
        return {
            f"{ours}/{our_part}": self._variables.take(
                f"{theirs}/{part}", self._d_model
            )
            for our_part, part in (("scale", "gamma"), ("bias", "beta"))
        }

    def tables(self, source: Vocabulary, target: Vocabulary) -> Arrays:
        """Takes the tables and the softmax's bias; notes which tables are one."""
        variables, d_model = self._variables, self._d_model
        keys = {
            "input": variables.key(_SOURCE),
            "target": variables.key(_TARGET),
            "softmax": variables.key(f"{_OUTPUT}/kernel"),
        }
        self.hparams["share_embeddings"] = len(set(keys.values())) == 1
        self.hparams["tie_target"] = keys["target"] == keys["softmax"] != keys["input"]
        for path, vocabulary in ((_SOURCE, source), (_TARGET, target)):
            rows = (variables.shape(path) or (0,))[0]
            if rows != len(vocabulary.pieces):
                raise UserError(
                    f"{vocabulary.file} has {len(vocabulary.pieces):,} pieces with "
                    f"{UNKNOWN}, but {path} in {variables.prefix} {rows:,} rows; they "
                    "belong to different models"
                )
        if keys["input"] == keys["target"] and source.pieces != target.pieces:
            raise UserError(
                f"{source.file} and {target.file} differ, but {variables.prefix} has "
                "one table for both; they belong to different models"
            )
        target_table = in_order(variables.take(_TARGET, None, d_model), target.order)
        softmax = target_table
        if keys["softmax"] != keys["target"]:
            kernel = variables.take(f"{_OUTPUT}/kernel", d_model, len(target.pieces))
            softmax = in_order(kernel.T, target.order)
        bias = np.zeros(len(target.pieces), np.float32)
        if variables.key(f"{_OUTPUT}/bias") is not None:
            bias = variables.take(f"{_OUTPUT}/bias", len(target.pieces))
        bias = in_order(bias, target.order)
        bias[0] = RULED_OUT
        name = "embedding" if self.hparams["share_embeddings"] else "softmax"
        found = {f"{name}/table": softmax, f"{name}/bias": bias}
        if not self.hparams["share_embeddings"]:
            table = variables.take(_SOURCE, None, d_model)
            found["input_embedding/table"] = in_order(table, source.order)
            if not self.hparams["tie_target"]:
                found["target_embedding/table"] = target_table
        return found
