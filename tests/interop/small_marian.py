"""A small folder of Marian's with random weights, and its formulas in NumPy.

The formulas are Marian's (layers/generic.h, models/transformer.h), in float64 and one
sentence at a time, so that they share nothing with the package's.
"""

import io
import json
import math
import random
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
    """What the files hold; `write` writes them, with changes for a test."""

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
    zeros: int = 1  # Behind the options' text.

    def __post_init__(self):
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(side for pair in tiny.pairs("train") for side in pair),
            model_writer=model,
            vocab_size=40,
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
            drawn = generator.normal(size=shape) * 0.5
            arrays[name] = drawn.astype(np.float32)

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
        """Writes the folder."""
        folder.mkdir(parents=True)
        text = yaml.safe_dump(self.options).encode() + b"\0" * self.zeros
        arrays = {**self.arrays, "special:model.yml": np.frombuffer(text, np.int8)}
        np.savez(folder / "model.npz", **arrays)
        (folder / "decoder.yml").write_text(yaml.safe_dump(self.decoder))
        # Words as Marian writes them: without quotes where YAML 1.2 needs none.
        lines = [
            f"{json.dumps(piece, ensure_ascii=False) if piece != 'no' else piece}: {n}"
            for n, piece in enumerate(self.pieces)
        ]
        text = "\n".join(lines) + "\n"
        (folder / "vocab.yml").write_text(text, encoding="utf-8")
        for side in ("source", "target"):
            (folder / f"{side}.spm").write_bytes(self.spm)
        return folder

    def logits(self, source: list[int], target: list[int]) -> np.ndarray:
        """Returns the logits (target, pieces) of ids in the vocabulary's order."""
        x = self._embedded(source)
        for n in (1, 2):
            x = self._attended(x, x, f"encoder_l{n}_self")
            x = self._fed(x, f"encoder_l{n}")
        memory, y = x, self._embedded([None, *target[:-1]])
        y = self._attended(y, y, "decoder_l1_self", causal=True)
        y = self._attended(y, memory, "decoder_l1_context")
        y = self._fed(y, "decoder_l1")
        return y @ self._of("Wemb").T + self._of("decoder_ff_logit_out_b")

    def _of(self, name):
        return self.arrays[name].astype(np.float64)

    def _embedded(self, ids):
        rows = np.zeros((len(ids), D))
        for place, one in enumerate(ids):
            if one is not None:
                rows[place] = self._of("Wemb")[one] * math.sqrt(D)
            for i in range(D // 2):
                angle = place * 10000 ** (-i / (D / 2 - 1))
                rows[place, i] += math.sin(angle)
                rows[place, D // 2 + i] += math.cos(angle)
        return rows

    def _linear(self, x, name, part):
        return x @ self._of(f"{name}_W{part}") + self._of(f"{name}_b{part}")

    def _attended(self, x, memory, name, causal=False):
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
        return self._normed(x + output, f"{name}_Wo")

    def _fed(self, x, layer):
        hidden = self._linear(x, f"{layer}_ffn", "1")
        hidden = self._activation(hidden)
        return self._normed(
            x + self._linear(hidden, f"{layer}_ffn", "2"), f"{layer}_ffn_ffn"
        )

    def _activation(self, x):
        name = self.options["transformer-ffn-activation"]
        if name == "relu":
            return np.maximum(x, 0)
        if name == "swish":
            return x / (1 + np.exp(-x))
        return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2

    def _normed(self, x, name):
        variance = x.var(axis=1, keepdims=True)
        normal = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(variance + 1e-9)
        return normal * self._of(f"{name}_ln_scale") + self._of(f"{name}_ln_bias")
