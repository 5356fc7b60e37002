# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Reproduce the paper
#
# *Attention Is All You Need* reports 27.3 BLEU for its base model and 28.4 for its big model, English to German, on newstest2014 (Table 2). This notebook runs the complete procedure that leads to these scores.
#
# The paper's base model was trained for 12 hours on eight P100; on the small GPU of a free notebook it would take a week or more. There are two modes:
#
# - `PAPER = False` (default): every part of the procedure with a small model on the built-in corpus. It takes ten minutes on two cores.
# - `PAPER = True`: the same procedure with the base model on WMT14, for a machine with several GPUs.

# %%
import glob
import importlib.util
import os
import subprocess
import sys

# Installs the package if it is missing: from a wheel that you uploaded to this folder,
# otherwise from the package index.
if importlib.util.find_spec("t2t_repro") is None:
    package = (glob.glob("t2t_repro-*.whl") or ["t2t_repro==0.2.0"])[-1]
    pip = [sys.executable, "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, package, "matplotlib"], check=True)

# The tests of this notebook set QUICK to train for seconds only.
QUICK = os.environ.get("T2T_REPRO_QUICK") == "1"

# %%
PAPER = False

SET, PROBLEM = (
    ("base", "translate_ende_wmt14") if PAPER else ("tiny", "translate_ende_numbers")
)
if QUICK:
    SET = "tiny,d_model=64,d_ff=128,num_layers=1,tokens_per_batch=512,train_steps=60"
    SET += ",warmup_steps=80,checkpoint_steps=12,eval_steps=0,decode_extra_length=5"

# %%
from t2t_repro.command_line.cli import start_tensorflow

start_tensorflow()  # Suppresses TensorFlow's log messages at startup.

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from t2t_repro import hparams
from t2t_repro.runs.model_dir import build_model

# %% [markdown]
# ## 1. The model (section 3 and Table 3)
#
# `configs/base.yaml` contains the hyper-parameters of the base model. The next cell builds the model and counts its weights.

# %%
base = hparams.load("base")
model = build_model(base, base.vocab_size)
built = sum(int(np.prod(v.shape)) for v in model.trainable_variables)


def count(d: int, d_ff: int, layers: int, vocabulary: int = 37_000) -> int:
    """Computes the number of weights, with shared embeddings and no attention biases."""
    norm = 2 * d
    attention = 4 * d * d + norm
    feed_forward = d * d_ff + d_ff + d_ff * d + d + norm
    encoder, decoder = attention + feed_forward, 2 * attention + feed_forward
    target_space = 32 * d  # In tensor2tensor, not in the paper.
    return vocabulary * d + target_space + layers * (encoder + decoder)


print(f"base, built:   {built:>11,}")
print(f"base, by hand: {count(512, 2048, 6):>11,}   (the paper prints 65 million)")
print(f"big, by hand:  {count(1024, 4096, 6):>11,}   (the paper prints 213 million)")
assert built == count(512, 2048, 6) == 63_062_016
del model

# %% [markdown]
# ## 2. The data (section 5.1)
#
# WMT14 English-German has about 4.5 million sentence pairs. A vocabulary of 37,000 byte pairs is learned from both languages together. newstest2013 is the validation set, newstest2014 the test set. `datagen` downloads the corpus with TensorFlow Datasets (several gigabytes), learns the vocabulary and encodes the pairs. This is optional, because `train` does the same if necessary.

# %%
# !python -m t2t_repro.datagen --problem {PROBLEM} --hparams {SET} --data_dir paper/data

# %% [markdown]
# ## 3. Batches (section 5.1)
#
# In the paper, a batch contains "approximately 25000 source tokens and 25000 target tokens". Here this is the limit for each side of a batch, including padding, over all devices together. A batch is divided into micro-batches whose gradients are accumulated. Sentences of similar length share a micro-batch, which keeps padding low, and each batch mixes micro-batches of all lengths.

# %%
from t2t_repro.batches.batching import plan_epoch
from t2t_repro.data.prepared_data import prepare
from t2t_repro.problems import create
from t2t_repro.training.procedure import make_batching_config

chosen = hparams.load(SET)
data = prepare(create(PROBLEM, "paper/data"), chosen, Path("paper/data"), print)
plan = plan_epoch(data.train.lengths, make_batching_config(chosen), chosen.seed, 0)
print("an epoch:", plan.summary())
figure, ax = plt.subplots(figsize=(6, 3))
ax.hist(data.train.lengths, bins=range(0, 60, 2), label=["source", "target"])
ax.set(xlabel="subwords, the end included", ylabel="sentences")
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# ## 4. Train (sections 5.2 to 5.4)
#
# The base model is trained for 100,000 steps with Adam ($\beta_1 = 0.9$, $\beta_2 = 0.98$, $\epsilon = 10^{-9}$) and the learning rate of equation (3) with 4,000 warm-up steps. Dropout is 0.1 on sub-layer outputs and embeddings, and label smoothing is 0.1. A checkpoint is saved every ten minutes. At the end, `train` averages the last five checkpoints and translates the test set with a beam of 4 and $\alpha = 0.6$.
#
# You can interrupt or kill the command and run it again: the result is bit-identical.

# %%
# !python -m t2t_repro.train --hparams {SET} --problem {PROBLEM} --data_dir paper/data --model_dir paper/model

# %%
log = np.genfromtxt("paper/model/training_log.tsv", names=True, delimiter="\t")
figure, axes = plt.subplots(1, 2, figsize=(10, 3.2))
axes[0].plot(log["step"], log["loss"])
axes[0].set(xlabel="update", ylabel="loss, nats per subword", ylim=(0, None))
axes[1].plot(log["step"], log["learning_rate"], color="tab:orange")
axes[1].set(xlabel="update", ylabel="learning rate", ylim=(0, None))
figure.tight_layout()
plt.show()

# %% [markdown]
# ## 5. Average (section 6.1)
#
# Compare the averaged checkpoint with the last one. Use the *validation* set for such comparisons, and the test set only for the final score. Greedy search is faster and sufficient here.

# %%
# !python -m t2t_repro.evaluate --model_dir paper/model --split val --checkpoint latest --beam_size 1
# !python -m t2t_repro.evaluate --model_dir paper/model --split val --checkpoint averaged --beam_size 1

# %% [markdown]
# ## 6. Score (section 6.1)
#
# There are two scores, which must not be compared with each other:
#
# - **sacreBLEU** tokenizes the plain text itself. Publish this score with its signature.
# - **The paper's BLEU** uses Moses tokenization and splits German compounds at hyphens. It is about 0.7 higher on newstest2014. The scores 27.3 and 28.4 are of this kind.

# %%
result = Path("paper/model/result.json")
if result.exists():
    score = json.loads(result.read_text(encoding="utf-8"))
    print(f"{score['split']}, averaged over the steps {score['averaged_steps']}")
    print(f"sacreBLEU        {score['bleu']:.2f}  {score['signature']}")
    print(f"the paper's BLEU {score['paper_bleu']:.2f}  {score['paper_signature']}")
else:
    print("The training run ended during warm-up, so the test set was not scored.")

# %% [markdown]
# ## 7. Compare with the paper
#
# | model | newstest2013 (Table 3) | newstest2014 (Table 2) |
# |---|---|---|
# | base | 25.8 | 27.3 |
# | big | 26.4 | 28.4 |
#
# Do not compare scores on newstest2013 with scores on newstest2014. Do not confuse the paper's model with tensor2tensor's later `transformer_base` either. That model (`t2t_base` here) uses pre-norm, another warm-up and more dropout.
#
# Use the set `big` for the big model, and `base_enfr` and `big_enfr` for English-French. All GPUs of the machine are used. With a single GPU, gradients are accumulated over the same batches, so the result is the same but takes longer.
