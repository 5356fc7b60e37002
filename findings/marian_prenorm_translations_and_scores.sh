#!/usr/bin/env bash
# Marian 1.12.42: decode and score disagree if normalization precedes the sublayers.
#
# "marian decode --n-best" prints the log probability of each translation. A good
# engineer would guess that "marian score" prints the same number. With
# transformer-postprocess "dan" (normalization last) it does, to five decimals. With
# transformer-preprocess "n" (first) the two differ by up to 2.7 in this example,
# from the second target token on.
#
# Source: LayerAttention in src/models/transformer.h normalizes keys and values only
# if they are the queries' node. The decoder passes states of earlier positions.
#
# Meaning for translation models: such a model translates worse in Marian than its
# loss promises. A program that imports it correctly returns the numbers of
# "marian score", and other translations than "marian decode".
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --no-compile 'pymarian==1.12.42' 'numpy<3'
cd "$folder"

PATH=$folder/venv/bin:$PATH python - <<'PYTHON'
import subprocess
from pathlib import Path

import numpy as np

BLOCKS = ["encoder_l1_self", "decoder_l1_self", "decoder_l1_context"]
BLOCKS += ["encoder_l1_ffn", "decoder_l1_ffn"]
Path("vocab.json").write_text('{"</s>": 0, "<unk>": 1, "a": 2, "b": 3, "c": 4, "d": 5}')
for pre, post in [("", "dan"), ("n", "da")]:
    normal = np.random.default_rng(9).standard_normal
    weights, norms = {"Wemb": normal((6, 8), "f") / 2}, ["encoder_top", "decoder_top"]
    weights["decoder_ff_logit_out_b"] = np.array([[2.5, -9, 0, 0, 0, 0]], "f")
    for block in BLOCKS:
        norms.append(block + ("_ffn" if "ffn" in block else "_Wo"))
        for part in "12" if "ffn" in block else "qkvo":
            weights[f"{block}_W{part}"] = normal((8, 8), "f")
            weights[f"{block}_b{part}"] = normal((1, 8), "f")
    for norm in norms:
        place = "_pre" if pre and "top" not in norm else ""
        weights[f"{norm}_ln_scale{place}"] = np.ones((1, 8), "f")
        weights[f"{norm}_ln_bias{place}"] = np.zeros((1, 8), "f")
    options = f"""{{type: transformer, version: v1.12, dim-vocabs: [6, 6], dim-emb: 8,
      enc-depth: 1, dec-depth: 1, tied-embeddings-all: true, transformer-heads: 2,
      transformer-dim-ffn: 8, transformer-preprocess: "{pre}",
      transformer-postprocess: "{post}", transformer-postprocess-top: "{pre}"}}\0"""
    weights["special:model.yml"] = np.frombuffer(options.encode(), "b")
    np.savez("model.npz", **weights)

    def marian(command: str, flags: str) -> list[str]:
        call = f"pymarian {command} --cpu-threads 1 --quiet -m model.npz {flags} -v"
        words = [*call.split(), "vocab.json", "vocab.json"]
        return subprocess.check_output(words, input=b"a b c d\n").decode().splitlines()

    best = marian("decode", "--n-best --beam-size 4 --normalize 0")
    Path("source.txt").write_text("a b c d\n" * len(best))
    targets = [line.split(" ||| ")[1] + "\n" for line in best]
    Path("target.txt").write_text("".join(targets))
    decoded = [float(line.split(" ||| ")[-1]) for line in best]
    scores = list(map(float, marian("score", "-t source.txt target.txt")))
    print(f"transformer-postprocess {post}")
    for row in zip(decoded, scores, targets, strict=True):
        print("  decode {:9.5f}  score {:9.5f} ".format(*row), row[2].strip())
    if (max(map(abs, np.subtract(decoded, scores))) < 1e-4) == bool(pre):
        raise SystemExit("changed: decode and score do not differ as stated")
PYTHON
