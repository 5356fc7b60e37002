"""Small random Marian model with a NumPy implementation.

The implementation follows Marian (layers/generic.h, models/transformer.h) in float64
and processes one sentence at a time, so it is independent of the package.
"""

import io
import json
import math
import random
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import sentencepiece
import yaml

from tests import tiny

D, HEADS, FFN = 8, 2, 12
OPTIONS = {
    "dec-depth": 1,
    "dim-emb": D,
    "enc-depth": 2,
    "transformer-decoder-autoreg": "self-attention",
    "transformer-decoder-dim-ffn": 10,
    "transformer-dim-ffn": FFN,
    "transformer-ffn-activation": "swish",
    "transformer-heads": HEADS,
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "transformer-preprocess": "",
    "type": "transformer",
    "version": "v1.12.42 0000000 2020-01-01",
}


@dataclass
class SmallMarian:
    """Contents of a model folder, which tests may change before writing it.

    Attributes:
        options: Marian's options in the weight file.
        decoder: Contents of decoder.yml.
        zeros: Number of zero bytes after the options.
        size: Number of SentencePiece pieces.
    """

    options: dict = field(default_factory=lambda: dict(OPTIONS))
    decoder: dict = field(
        default_factory=lambda: {
            "models": ["/elsewhere/model.npz"],
            "vocabs": ["vocab.yml", "vocab.yml"],
            "beam-size": 3,
            "normalize": 0.5,
            "mini-batch": 1,
        }
    )
    zeros: int = 1
    size: int = 40

    def __post_init__(self):
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(side for pair in tiny.pairs("train") for side in pair),
            model_writer=model,
            vocab_size=self.size,
            hard_vocab_limit=False,
            minloglevel=2,
        )
        self.spm = model.getvalue()
        library = sentencepiece.SentencePieceProcessor(model_proto=self.spm)
        pieces = [library.id_to_piece(n) for n in range(3, library.vocab_size())]
        random.Random(1).shuffle(pieces)
        self.pieces = ["<unk>", "no", *pieces[:5], "</s>", *pieces[5:], ">>deu<<"]
        self.arrays = self._draw(np.random.default_rng(3))

    def _draw(self, generator):
        arrays = {}

        def draw(name, *shape):
            values = generator.normal(size=shape) * 0.5
            arrays[name] = values.astype(np.float32)

        def norm(name):
            draw(f"{name}_ln_scale", 1, D)
            draw(f"{name}_ln_bias", 1, D)

        for side, depth, width in (("encoder", 2, FFN), ("decoder", 1, 10)):
            for n in range(1, depth + 1):
                layer = f"{side}_l{n}"
                for block in ("self", "context")[: 1 + (side == "decoder")]:
                    for part in "qkvo":
                        draw(f"{layer}_{block}_W{part}", D, D)
                        draw(f"{layer}_{block}_b{part}", 1, D)
                    norm(f"{layer}_{block}_Wo")
                draw(f"{layer}_ffn_W1", D, width)
                draw(f"{layer}_ffn_b1", 1, width)
                draw(f"{layer}_ffn_W2", width, D)
                draw(f"{layer}_ffn_b2", 1, D)
                norm(f"{layer}_ffn_ffn")
        draw("Wemb", len(self.pieces), D)
        draw("decoder_ff_logit_out_b", 1, len(self.pieces))
        return arrays

    def write(self, folder: Path) -> Path:
        """Writes the model as a Marian folder."""
        folder.mkdir(parents=True)
        text = yaml.safe_dump(self.options).encode() + b"\0" * self.zeros
        arrays = {**self.arrays, "special:model.yml": np.frombuffer(text, np.int8)}
        np.savez(folder / "model.npz", **arrays)
        (folder / "decoder.yml").write_text(yaml.safe_dump(self.decoder))
        # Like Marian, leave `no` unquoted: it is a string in YAML 1.2.
        lines = [
            f"{json.dumps(piece, ensure_ascii=False) if piece != 'no' else piece}: {n}"
            for n, piece in enumerate(self.pieces)
        ]
        text = "\n".join(lines) + "\n"
        (folder / "vocab.yml").write_text(text, encoding="utf-8")
        for side in ("source", "target"):
            (folder / f"{side}.spm").write_bytes(self.spm)
        return folder

    def write_transformers(self, folder: Path, with_torch: bool = False) -> Path:
        """Writes the model as a Transformers folder."""
        folder.mkdir(parents=True)
        padding = len(self.pieces)
        ids = {
            "pad_token_id": padding,
            "eos_token_id": self.pieces.index("</s>"),
            "decoder_start_token_id": padding,
        }
        files = {
            "config.json": ids
            | {
                "model_type": "marian",
                "d_model": D,
                "encoder_layers": 2,
                "decoder_layers": 1,
                "encoder_attention_heads": HEADS,
                "decoder_attention_heads": HEADS,
                "encoder_ffn_dim": FFN,
                "decoder_ffn_dim": 10,
                "activation_function": self.options["transformer-ffn-activation"],
                "scale_embedding": True,
                "vocab_size": padding + 1,
                "decoder_vocab_size": padding + 1,
                "dropout": 0.1,
            },
            "generation_config.json": ids | {"num_beams": 3, "max_length": 30},
            "tokenizer_config.json": {"source_lang": "en", "target_lang": "fi"},
            "vocab.json": {p: n for n, p in enumerate([*self.pieces, "<pad>"])},
        }
        for name, values in files.items():
            (folder / name).write_text(json.dumps(values), encoding="utf-8")
        for side in ("source", "target"):
            (folder / f"{side}.spm").write_bytes(self.spm)
        arrays = {
            _transformers_name(name): self._transformers_array(name)
            for name in self.arrays
        }
        if with_torch:
            import torch

            tensors = {name: torch.tensor(array) for name, array in arrays.items()}
            torch.save(tensors, folder / "pytorch_model.bin")
        else:
            (folder / "model.safetensors").write_bytes(safetensors(arrays))
        return folder

    def _transformers_array(self, name: str) -> np.ndarray:
        """Returns an array in Transformers' layout, with a row for padding."""
        array = self.arrays[name]
        if name == "Wemb":
            return np.concatenate([array, np.zeros_like(array[:1])])
        if name == "decoder_ff_logit_out_b":
            return np.pad(array, ((0, 0), (0, 1)))
        return array[0] if len(array) == 1 else np.ascontiguousarray(array.T)

    def logits(self, source: list[int], target: list[int]) -> np.ndarray:
        """Returns the logits: float64 (targets, pieces).

        Args:
            source: Source ids in the order of the vocabulary.
            target: Target ids in the order of the vocabulary, ending with </s>.
        """
        x = self._embed(source)
        for n in (1, 2):
            x = self._attend(x, x, f"encoder_l{n}_self")
            x = self._feed_forward(x, f"encoder_l{n}")
        memory, y = x, self._embed([None, *target[:-1]])
        y = self._attend(y, y, "decoder_l1_self", causal=True)
        y = self._attend(y, memory, "decoder_l1_context")
        y = self._feed_forward(y, "decoder_l1")
        return y @ self._array("Wemb").T + self._array("decoder_ff_logit_out_b")

    def _array(self, name):
        return self.arrays[name].astype(np.float64)

    def _embed(self, ids):
        rows = np.zeros((len(ids), D))
        for position, token in enumerate(ids):
            if token is not None:
                rows[position] = self._array("Wemb")[token] * math.sqrt(D)
            for i in range(D // 2):
                angle = position * 10000 ** (-i / (D / 2 - 1))
                rows[position, i] += math.sin(angle)
                rows[position, D // 2 + i] += math.cos(angle)
        return rows

    def _linear(self, x, name, part):
        return x @ self._array(f"{name}_W{part}") + self._array(f"{name}_b{part}")

    def _attend(self, x, memory, name, causal=False):
        q = self._linear(x, name, "q")
        k, v = (self._linear(memory, name, part) for part in "kv")
        heads = []
        for head in np.split(np.arange(D), HEADS):
            scores = q[:, head] @ k[:, head].T / math.sqrt(D // HEADS)
            if causal:
                scores[np.triu_indices(len(x), 1)] = -np.inf
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            heads.append(weights / weights.sum(axis=1, keepdims=True) @ v[:, head])
        output = self._linear(np.concatenate(heads, axis=1), name, "o")
        return self._normalize(x + output, f"{name}_Wo")

    def _feed_forward(self, x, layer):
        hidden = self._linear(x, f"{layer}_ffn", "1")
        hidden = self._activation(hidden)
        return self._normalize(
            x + self._linear(hidden, f"{layer}_ffn", "2"), f"{layer}_ffn_ffn"
        )

    def _activation(self, x):
        name = self.options["transformer-ffn-activation"]
        if name == "relu":
            return np.maximum(x, 0)
        if name == "swish":
            return x / (1 + np.exp(-x))
        return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2

    def _normalize(self, x, name):
        variance = x.var(axis=1, keepdims=True)
        normal = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(variance + 1e-9)
        scale, bias = self._array(f"{name}_ln_scale"), self._array(f"{name}_ln_bias")
        return normal * scale + bias


def _transformers_name(name: str) -> str:
    """Returns Transformers' name of one of Marian's arrays."""
    match = re.fullmatch(r"(\w+?)_l(\d+)_(.*)", name)
    if match is None:
        return "model.shared.weight" if name == "Wemb" else "final_logits_bias"
    side, number, rest = match.groups()
    for marian, transformers in (
        (r"self_Wo_ln_", "self_attn_layer_norm."),
        (r"context_Wo_ln_", "encoder_attn_layer_norm."),
        (r"ffn_ffn_ln_", "final_layer_norm."),
        (r"self_(.)([qkvo])", r"self_attn.\2_proj.\1"),
        (r"context_(.)([qkvo])", r"encoder_attn.\2_proj.\1"),
        (r"\.o_proj", ".out_proj"),
        (r"ffn_(.)(\d)", r"fc\2.\1"),
        (r"\.(scale|W)$", ".weight"),
        (r"\.b$", ".bias"),
    ):
        rest = re.sub(marian, transformers, rest)
    return f"model.{side}.layers.{int(number) - 1}.{rest}"


def safetensors(arrays: dict[str, np.ndarray], **changes: dict) -> bytes:
    """Serializes arrays as safetensors; `changes` override header entries."""
    header, data = {}, b""
    for name, array in arrays.items():
        end = len(data) + array.nbytes
        kind = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}[
            str(array.dtype)
        ]
        entry = {"dtype": kind, "shape": array.shape, "data_offsets": [len(data), end]}
        header[name] = entry | changes.get(name, {})
        data += array.tobytes()
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data
