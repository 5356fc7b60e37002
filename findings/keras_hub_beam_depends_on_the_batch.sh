#!/usr/bin/env bash
# Beam search of keras-hub 0.32.0: a row's result depends on the rest of the batch.
#
# A good engineer would guess that a batch of two sentences gives what each of
# them gives alone. BeamSampler has no set of finished hypotheses: its loop ends
# when every beam of every row has an end token, and until then it extends
# finished beams too and adds the log probabilities of the tokens after the end.
# A short sentence that waits for a long one is ranked by tokens that are cut off
# later.
#
# Here the model is a table of probabilities. The first row's best hypothesis is
# "A end" (0.6 x 0.6 = 0.36) and its second best "B end" (0.4 x 0.8 = 0.32). Alone,
# it gives A. Next to a row that needs more steps it gives B, because each token
# after "A end" in the table has a probability of 0.25, and the one after "B end"
# of 1. No model is trained on tokens that follow the end.
#
# Source: keras_hub/src/samplers/beam_sampler.py, cond and body of __call__.
#
# Meaning for translation models: a translation may change with the batch size
# and the order of the lines. For evaluation, use batches of one or a sampler
# that keeps finished hypotheses.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --no-compile 'keras-hub==0.32.0' \
  'keras==3.15.1' 'tensorflow==2.21.0'

HOME=$folder KERAS_BACKEND=tensorflow TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES='' \
  "$folder/venv/bin/python" - <<'PYTHON'
import sys

import keras_hub
import numpy as np
from keras import ops

END, A, B, SHORT, LONG = 1, 2, 3, 4, 5
# Probabilities of the next token, by the two tokens before it.
table = np.full((6, 6, 6), 1 / 6, np.float32)
table[SHORT, SHORT] = [0, 0, 0.6, 0.4, 0, 0]
table[SHORT, A] = [0, 0.6, 0.1, 0.1, 0.1, 0.1]
table[SHORT, B] = [0, 0.8, 0.2, 0, 0, 0]
table[A, END] = [0, 0, 0.25, 0.25, 0.25, 0.25]
table[B, END] = [0, 1, 0, 0, 0, 0]
table[LONG, LONG] = [0, 0.05, 0, 0, 0, 0.95]


def next_token(prompt, cache, index):
    """Returns the logits of each row, no hidden states and the cache."""
    before = prompt[:, index - 2] * 6 + prompt[:, index - 1]
    return ops.log(ops.take(table.reshape(36, 6), before, axis=0) + 1e-9), None, cache


def search(starts: list[int]) -> int:
    """Returns the first token that the search generates for the first row."""
    prompt = np.zeros((len(starts), 8), np.int32)
    prompt[:, :2] = np.array(starts)[:, None]
    sampler = keras_hub.samplers.BeamSampler(num_beams=2)
    options = {"index": 2, "mask": prompt > 0, "stop_token_ids": [END]}
    tokens = sampler(next_token, ops.convert_to_tensor(prompt), **options)
    print(f"rows that begin with {starts}: {ops.convert_to_numpy(tokens).tolist()}")
    return int(tokens[0][2])


alone, joined = search([SHORT]), search([SHORT, LONG])
if (alone, joined) != (A, B):
    sys.exit("changed: the short row does not depend on its neighbor as stated")
PYTHON
