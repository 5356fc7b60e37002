#!/usr/bin/env bash
# CTranslate2 4.8.5: translate_batch and score_batch give one output two scores.
#
# A good engineer would guess that the score of a translation is its log
# probability, divided by a power of its length, and that score_batch confirms it.
# The model below gives 0.5 </s>, 0.3 a, 0.2 b at each place, which shows that
#
#   min_decoding_length, by default 1, masks </s> before the softmax, which is not
#   documented: "a" gets 0.3 / (0.3 + 0.2), so that "a </s>" has log(0.6 x 0.5);
#   </s> counts in the length: the score of "a" is divided by 2 ** length_penalty;
#   a target_prefix counts in the length, and its log probability does not: after
#   "b a" the score is log(0.5) / 3.
#
# Meaning for translation models: scores for filtering or reranking differ between
# the two functions, and a model that prefers an empty output does not show it.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --no-compile 'ctranslate2==4.8.5' 'numpy<3'
mkdir "$folder/model" && cd "$folder"

venv/bin/python - <<'PYTHON'
import ctranslate2
import numpy as np
from ctranslate2.specs import TransformerSpec

spec = TransformerSpec.from_config((1, 1), num_heads=1)
(encoder,), (decoder,) = spec.encoder.layer, spec.decoder.layer
blocks = [encoder.self_attention, decoder.self_attention, decoder.attention]
linears = [linear for block in blocks for linear in block.linear]
linears += [encoder.ffn.linear_0, encoder.ffn.linear_1]
linears += [decoder.ffn.linear_0, decoder.ffn.linear_1]
for linear, rows in zip(linears, (24, 8, 24, 8, 8, 16, 8, 8, 8, 8, 8), strict=True):
    linear.weight = np.zeros((rows, 8), "f")
for block in (*blocks, encoder.ffn, decoder.ffn, spec.encoder, spec.decoder):
    block.layer_norm.gamma = block.layer_norm.beta = np.zeros(8, "f")
output = spec.decoder.projection
for part in (spec.encoder.embeddings[0], spec.decoder.embeddings, output):
    part.weight = np.zeros((5, 8), "f")
output.bias = np.log(np.array([1e-9, 1e-9, 0.5, 0.3, 0.2], "f"))
for register in (spec.register_source_vocabulary, spec.register_target_vocabulary):
    register(["<unk>", "<s>", "</s>", "a", "b"])
spec.validate()
spec.save("model")
translator = ctranslate2.Translator("model")


def probability(**options) -> float:
    """Returns exp(score) of the first hypothesis that is not empty."""
    options = {"beam_size": 4, "num_hypotheses": 4, "length_penalty": 0, **options}
    result = translator.translate_batch([["a"]], return_scores=True, **options)[0]
    best = next(n for n, words in enumerate(result.hypotheses) if words)
    return round(float(np.exp(result.scores[best])), 4)


scored = translator.score_batch([["a"]], [["a"]])[0]
shown = {
    "score_batch": round(float(np.exp(sum(scored.log_probs))), 4),
    "min_decoding_length=0": probability(min_decoding_length=0),
    "default": probability(),
    "length_penalty=1": probability(length_penalty=1),
    "prefix b a": probability(length_penalty=1, target_prefix=[["b", "a"]]),
}
print("exp(score):", shown)
by_hand = [0.3 * 0.5, 0.3 * 0.5, 0.6 * 0.5, (0.6 * 0.5) ** (1 / 2), 0.5 ** (1 / 3)]
if list(shown.values()) != [round(value, 4) for value in by_hand]:
    raise SystemExit("changed: the scores do not follow the three rules")
PYTHON
