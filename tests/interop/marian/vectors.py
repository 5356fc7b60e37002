"""What Marian and Transformers compute with four small models, and these models."""

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
"""Each model with the program whose files and conventions it has."""


@dataclass(frozen=True)
class Vectors:
    """A model, and what its own program computes with it.

    Attributes:
        folder: what an importer is given.
        model: ours, without dropout.
        orders: the folder's rows behind ours, less padding: of the source, the target.
        arrays: of a padded batch.
        lines: of 40 lines.
        searches: tensor2tensor's search, by its settings.
    """

    program: str
    folder: Path
    model: Transformer
    orders: tuple[list[int], list[int]]
    arrays: dict[str, np.ndarray]
    lines: dict[str, Any]
    searches: dict[str, Any]

    def batch(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns inputs and targets in our ids, 0-padded."""
        a = self.arrays
        return (
            padded(self.arrays["inputs"], a["inputs_mask"], self.orders[0]),
            padded(self.arrays["targets"], a["targets_mask"], self.orders[1]),
        )


def ours(ids, order):
    """Returns ids of a folder as ours."""
    place = {row: number for number, row in enumerate(order, start=1)}
    return [place[int(number)] for number in ids]


def theirs(ids, order):
    """Returns our ids as the folder's, without padding."""
    return [order[int(number) - 1] for number in ids if number]


def padded(ids, mask, order):
    """Returns ids of a folder as ours, 0 where the mask is false."""
    rows = np.zeros(ids.shape, np.int32)
    rows[mask] = ours(ids[mask], order)
    return rows


def orders(folder: Path, tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """Returns the folder's id of each of our ids but padding, for both sides."""
    if settings := [*folder.glob("*decoder.yml")]:
        names = yaml.safe_load(settings[0].read_text(encoding="utf-8"))["vocabs"]
    else:
        own = (folder / "target_vocab.json").is_file()
        names = "vocab.json", "target_vocab.json" if own else "vocab.json"
    texts = [(folder / name).read_text(encoding="utf-8") for name in names]
    # JSON is YAML; the base loader keeps words such as `no`.
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


def our_gradient(name: str, found: dict[str, np.ndarray], vectors: Vectors):
    """Returns our gradient as the program has it, by its name; found has ours."""
    source, target = vectors.orders
    transposed = vectors.program == "transformers"
    if transposed:
        return _of_transformers(name, found, source, target)
    return _of_marian(name, found, source, target)


def _rows(gradient, order):
    """Puts rows, or a bias, in the program's order, without padding."""
    back = np.zeros_like(gradient[1:])
    back[order] = gradient[1:]
    return back


def _of_marian(name, found, source, target):
    tables = {"Wemb": "embedding", "encoder_Wemb": "input_embedding"}
    both = "target_embedding/table" not in found
    tables["decoder_Wemb"] = "softmax" if both else "target_embedding"
    tables["decoder_ff_logit_out_Wt"] = "softmax"
    if name in tables:
        order = source if name == "encoder_Wemb" else target
        return _rows(found[f"{tables[name]}/table"], order)
    if name == "decoder_ff_logit_out_b":
        table = "embedding" if "embedding/bias" in found else "softmax"
        return _rows(found[f"{table}/bias"], target)[None]
    if "_top_ln_" in name:
        side, kind = name.split("_top_ln_")
        return found[f"{side}/final_norm/{kind}"][None]
    match = _MARIAN.fullmatch(name)
    layer = f"{match['side']}/layer_{int(match['n']) - 1}"
    rest, block = match["rest"].removesuffix("_pre"), match["block"]
    if "_ln_" in rest:
        ours_ = _BLOCKS.get(block, "feed_forward")
        kind = rest.rpartition("_")[2]
        return found[f"{layer}/{ours_}_residual/layer_norm/{kind}"][None]
    kind = "kernel" if rest[0] == "W" else "bias"
    if block == "ffn":
        part = {"1": "hidden", "2": "output"}[rest[1]]
        value = found[f"{layer}/feed_forward/{part}/{kind}"]
    else:
        value = found[f"{layer}/{_BLOCKS[block]}/{_PARTS[rest[1]]}/{kind}"]
    return value if kind == "kernel" else value[None]


def _of_transformers(name, found, source, target):
    parts = name.split(".")
    if name == "final_logits_bias":
        table = "embedding" if "embedding/bias" in found else "softmax"
        return _rows(found[f"{table}/bias"], target)[None]
    if "layers" not in parts:
        if "embedding/table" in found:
            return _rows(found["embedding/table"], target)
        if "encoder" in parts:
            return _rows(found["input_embedding/table"], source)
        return _rows(found["softmax/table"], target)
    _, side, _, number, block, *rest = parts
    layer = f"{side}/layer_{number}"
    norm = {"weight": "scale", "bias": "bias"}
    linear = {"weight": "kernel", "bias": "bias"}
    if block.endswith("layer_norm"):
        ours_ = _BLOCKS.get(block.removesuffix("_layer_norm"), "feed_forward")
        return found[f"{layer}/{ours_}_residual/layer_norm/{norm[rest[0]]}"]
    if block in ("fc1", "fc2"):
        part = {"fc1": "hidden", "fc2": "output"}[block]
        return found[f"{layer}/feed_forward/{part}/{linear[rest[0]]}"].T
    part = _PARTS[rest[0][0]]
    return found[f"{layer}/{_BLOCKS[block]}/{part}/{linear[rest[1]]}"].T
