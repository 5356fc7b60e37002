#!/usr/bin/env bash
# Keras 3.15.1: Adafactor stores a second moment for every weight, and caps the rate.
#
# Adafactor exists to save memory: for a matrix of n rows and m columns it keeps n + m
# means instead of n * m second moments (Shazeer & Stern 2018, arXiv:1804.04235). A good
# engineer would guess that keras.optimizers.Adafactor does so. It keeps both: the rows,
# the columns, and a "velocity" of n * m numbers, which each step computes anew from
# rows and columns. Its state for a 1000 x 1000 matrix has 1,002,000 numbers, more than
# RMSprop's 1,000,000.
#
# relative_step=False should switch the rate of the paper off, min(rate, 1 / sqrt(t)).
# A second minimum in the update remains: with a rate of 0.5 the step at t = 100 is a
# fifth of the step that the rate asks for.
#
# Meaning for translation models: the tables and matrices of a Transformer are nearly
# all of its weights, so this Adafactor does not make a larger model fit, and rates from
# tensor2tensor or Transformers do not transfer.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --no-compile 'keras==3.15.1' 'numpy<3' 'jax==0.10.*'

KERAS_BACKEND=jax "$folder/venv/bin/python" - <<'PYTHON'
import keras
import numpy as np

weight = keras.Variable(np.ones((1000, 1000), "float32"))
sizes = {}
for name in ("Adafactor", "RMSprop"):
    optimizer = getattr(keras.optimizers, name)(0.5)
    optimizer.build([weight])
    sizes[name] = sum(int(np.prod(v.shape)) for v in optimizer.variables[2:])
print("numbers in the state:", sizes)

# The update g / sqrt(v) has a root mean square of at most 1, so that each element
# changes by rate * max(RMS(weight), 0.001) = rate.
small = keras.Variable(np.ones((2, 2), "float32"))
optimizer = keras.optimizers.Adafactor(0.5, relative_step=False)
optimizer.build([small])
optimizer.iterations.assign(99)
optimizer.apply([np.ones((2, 2), "float32")])
update = 1 - float(small.numpy()[0, 0])
print(f"update at step 100 with a rate of 0.5: {update:.3f}")

assert sizes == {"Adafactor": 1_002_000, "RMSprop": 1_000_000}, sizes
assert abs(update - 0.1) < 0.01, update
PYTHON
