"""Four small Marian models and their outputs in Marian and Transformers."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from t2t_repro.interop.marian.importer import read
from t2t_repro.models.transformer import Transformer
from t2t_repro.tokenizers.tokenizer import Tokenizer
from tests import golden

CASES = [
    ("a_opus", "marian"),
    ("b_relu_labels", "marian"),
    ("c_gelu_separate", "marian"),
    ("d_prenorm_untied", "marian"),
    ("a_opus", "transformers"),
    ("b_relu_labels", "transformers"),
    ("c_gelu_separate", "transformers"),
]
"""Pairs of a model and the program whose files and conventions it uses."""


@dataclass(frozen=True)
class Vectors:
    """Imported model with the outputs of its original program.

    Attributes:
        program: "marian" or "transformers".
        folder: Model folder of the program.
        model: Imported model, without dropout.
        orders: For source and target, the program's id of each of this package's ids
            except padding.
        arrays: Inputs and outputs of a padded batch.
        lines: Inputs and outputs of 40 lines.
        searches: Results of tensor2tensor's beam search by setting.
    """

    program: str
    folder: Path
    model: Transformer
    orders: tuple[list[int], list[int]]
    arrays: dict[str, np.ndarray]
    lines: dict[str, Any]
    searches: dict[str, Any]

    def batch(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns inputs and targets as this package's ids, padded with 0."""
        a = self.arrays
        return (
            padded(self.arrays["inputs"], a["inputs_mask"], self.orders[0]),
            padded(self.arrays["targets"], a["targets_mask"], self.orders[1]),
        )


def from_program_ids(ids, order):
    """Converts the program's ids to this package's."""
    ours = {row: number for number, row in enumerate(order, start=1)}
    return [ours[int(number)] for number in ids]


def to_program_ids(ids, order):
    """Converts this package's ids to the program's and removes padding."""
    return [order[int(number) - 1] for number in ids if number]


def padded(ids, mask, order):
    """Converts the program's ids to this package's, 0 where the mask is false."""
    rows = np.zeros(ids.shape, np.int32)
    rows[mask] = from_program_ids(ids[mask], order)
    return rows


def orders(folder: Path, tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """Returns the program's id of each of this package's ids except padding."""
    if settings := [*folder.glob("*decoder.yml")]:
        names = yaml.safe_load(settings[0].read_text(encoding="utf-8"))["vocabs"]
    else:
        own = (folder / "target_vocab.json").is_file()
        names = "vocab.json", "target_vocab.json" if own else "vocab.json"
    texts = [(folder / name).read_text(encoding="utf-8") for name in names]
    # JSON is valid YAML, and the base loader keeps words such as `no` as text.
    ids = [yaml.load(text, yaml.CBaseLoader) for text in texts]
    sides = tokenizer, tokenizer.target
    source, target = (
        [int(numbers[piece]) for piece in side.pieces[1:]]
        for numbers, side in zip(ids, sides, strict=True)
    )
    return source, target


def load(shared: Path, case: str, program: str) -> Vectors:
    folder = shared / "marian" / case
    source = read(folder / program, positions=program)
    return Vectors(
        program,
        folder / program,
        source.build(source.hparams.replace(dropout=0.0)),
        orders(folder / program, source.tokenizer),
        golden.load(folder / f"{program}.npz"),
        json.loads((folder / f"{program}.json").read_text()),
        json.loads((folder / "t2t_search.json").read_text()),
    )


_PARTS = {"q": "query", "k": "key", "v": "value", "o": "output"}
_MARIAN = re.compile(
    r"(?P<side>encoder|decoder)_l(?P<n>\d+)_(?P<block>self|context|ffn)_(?P<rest>.*)"
)
_BLOCKS = {"self": "self_attention", "context": "cross_attention"}
_BLOCKS |= {"self_attn": "self_attention", "encoder_attn": "cross_attention"}


def program_gradient(name: str, ours: dict[str, np.ndarray], vectors: Vectors):
    """Returns a gradient in the program's layout.

    Args:
        name: The program's name of the variable.
        ours: Gradients by this package's names.
        vectors: Data of the model.
    """
    source, target = vectors.orders
    if vectors.program == "transformers":
        return _transformers_gradient(name, ours, source, target)
    return _marian_gradient(name, ours, source, target)


def _in_program_order(gradient, order):
    """Reorders the rows of a table or bias and removes padding."""
    rows = np.zeros_like(gradient[1:])
    rows[order] = gradient[1:]
    return rows


def _marian_gradient(name, ours, source, target):
    tables = {"Wemb": "embedding", "encoder_Wemb": "input_embedding"}
    is_tied = "target_embedding/table" not in ours
    tables["decoder_Wemb"] = "softmax" if is_tied else "target_embedding"
    tables["decoder_ff_logit_out_Wt"] = "softmax"
    if name in tables:
        order = source if name == "encoder_Wemb" else target
        return _in_program_order(ours[f"{tables[name]}/table"], order)
    if name == "decoder_ff_logit_out_b":
        table = "embedding" if "embedding/bias" in ours else "softmax"
        return _in_program_order(ours[f"{table}/bias"], target)[None]
    if "_top_ln_" in name:
        side, kind = name.split("_top_ln_")
        return ours[f"{side}/final_norm/{kind}"][None]
    match = _MARIAN.fullmatch(name)
    layer = f"{match['side']}/layer_{int(match['n']) - 1}"
    rest, block = match["rest"].removesuffix("_pre"), match["block"]
    if "_ln_" in rest:
        scope = _BLOCKS.get(block, "feed_forward")
        kind = rest.rpartition("_")[2]
        return ours[f"{layer}/{scope}_residual/layer_norm/{kind}"][None]
    kind = "kernel" if rest[0] == "W" else "bias"
    if block == "ffn":
        part = {"1": "hidden", "2": "output"}[rest[1]]
        value = ours[f"{layer}/feed_forward/{part}/{kind}"]
    else:
        value = ours[f"{layer}/{_BLOCKS[block]}/{_PARTS[rest[1]]}/{kind}"]
    return value if kind == "kernel" else value[None]


def _transformers_gradient(name, ours, source, target):
    parts = name.split(".")
    if name == "final_logits_bias":
        table = "embedding" if "embedding/bias" in ours else "softmax"
        return _in_program_order(ours[f"{table}/bias"], target)[None]
    if "layers" not in parts:
        if "embedding/table" in ours:
            return _in_program_order(ours["embedding/table"], target)
        if "encoder" in parts:
            return _in_program_order(ours["input_embedding/table"], source)
        return _in_program_order(ours["softmax/table"], target)
    _, side, _, number, block, *rest = parts
    layer = f"{side}/layer_{number}"
    norm = {"weight": "scale", "bias": "bias"}
    linear = {"weight": "kernel", "bias": "bias"}
    if block.endswith("layer_norm"):
        scope = _BLOCKS.get(block.removesuffix("_layer_norm"), "feed_forward")
        return ours[f"{layer}/{scope}_residual/layer_norm/{norm[rest[0]]}"]
    if block in ("fc1", "fc2"):
        part = {"fc1": "hidden", "fc2": "output"}[block]
        return ours[f"{layer}/feed_forward/{part}/{linear[rest[0]]}"].T
    part = _PARTS[rest[0][0]]
    return ours[f"{layer}/{_BLOCKS[block]}/{part}/{linear[rest[1]]}"].T
