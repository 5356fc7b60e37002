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
# *Attention Is All You Need* reports 27.3 BLEU for its base model and 28.4 for its big one, English to German, on newstest2014 (Table 2). This notebook is the whole way to those figures: what is done, in which order, by which command.
#
# The way itself is long. The paper's base model took 12 hours on eight P100; on the one small GPU of a free notebook it would be a week or more. So there are two modes:
#
# - `PAPER = False` (as it stands): every step of the procedure, with the paper's recipe, on the built-in corpus and at a size that finishes on free hardware: ten minutes on two cores.
# - `PAPER = True`: the same cells with WMT14 and the base model, for a machine with several GPUs.

# %%
import glob
import importlib.util
import os
import subprocess
import sys

# Where the package is installed already, nothing happens here. Otherwise it comes
# from a wheel that you have uploaded beside the notebook, or from the release.
if importlib.util.find_spec("t2t_repro") is None:
    package = (glob.glob("t2t_repro-*.whl") or ["t2t_repro==0.2.0"])[-1]
    pip = [sys.executable, "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, package, "matplotlib"], check=True)

# The tests of this notebook train for seconds. You want a whole training.
QUICK = os.environ.get("T2T_REPRO_QUICK") == "1"

# %%
PAPER = False

SET, PROBLEM = (
    ("base", "translate_ende_wmt14") if PAPER else ("tiny", "translate_ende_numbers")
)
if QUICK:
    SET = "tiny,d_model=64,d_ff=128,tokens_per_batch=1024,train_steps=60"
    SET += ",warmup_steps=80,checkpoint_steps=12,eval_steps=0,decode_extra_length=5"

# %%
from t2t_repro.command_line.cli import start_tensorflow

start_tensorflow()  # Without the lines that TensorFlow logs while it starts.

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from t2t_repro import hparams
from t2t_repro.runs.model_dir import build_model

# %% [markdown]
# ## 1. The model (section 3 and Table 3)
#
# The recipe is a file, `configs/base.yaml`. Let us build it and count.

# %%
base = hparams.load("base")
model = build_model(base, base.vocab_size)
built = sum(int(np.prod(v.shape)) for v in model.trainable_variables)


def count(d: int, d_ff: int, layers: int, vocabulary: int = 37_000) -> int:
    """Counts the weights by hand: one shared matrix, attention without biases."""
    norm = 2 * d
    attention = 4 * d * d + norm
    feed_forward = d * d_ff + d_ff + d_ff * d + d + norm
    encoder, decoder = attention + feed_forward, 2 * attention + feed_forward
    target_space = 32 * d  # tensor2tensor's, not in the paper
    return vocabulary * d + target_space + layers * (encoder + decoder)


print(f"base, built:   {built:>11,}")
print(f"base, by hand: {count(512, 2048, 6):>11,}   (the paper prints 65 million)")
print(f"big, by hand:  {count(1024, 4096, 6):>11,}   (the paper prints 213 million)")
assert built == count(512, 2048, 6) == 63_062_016
del model

# %% [markdown]
# ## 2. The data (section 5.1)
#
# WMT14 English-German has about 4.5 million pairs; 37,000 byte pairs are learned from both languages together. Validation is newstest2013, test newstest2014. `datagen` fetches the corpus through TensorFlow Datasets (some gigabytes), learns the subwords and encodes the pairs. Training would do it by itself; doing it first shows what is there.

# %%
# !python -m t2t_repro.datagen --problem {PROBLEM} --hparams {SET} --data_dir paper/data

# %% [markdown]
# ## 3. Batches (section 5.1)
#
# "About 25,000 source tokens and 25,000 target tokens." Here a batch is bounded on each side, padding included, over all devices together; what does not fit at once is made of parts that are accumulated. Sentences of like length share a part, so little is padding; a batch has parts of all lengths.

# %%
from t2t_repro.batches.batching import plan_epoch
from t2t_repro.data.prepared_data import prepare
from t2t_repro.problems import create
from t2t_repro.training.procedure import batching_of

chosen = hparams.load(SET)
data = prepare(create(PROBLEM, "paper/data"), chosen, Path("paper/data"), print)
plan = plan_epoch(data.train.lengths, batching_of(chosen), chosen.seed, 0)
print("an epoch:", plan.summary())
figure, ax = plt.subplots(figsize=(6, 3))
ax.hist(data.train.lengths, bins=range(0, 60, 2), label=["source", "target"])
ax.set(xlabel="subwords, the end included", ylabel="sentences")
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# ## 4. Train (sections 5.2 to 5.4)
#
# 100,000 updates with Adam ($\beta_1 = 0.9$, $\beta_2 = 0.98$, $\epsilon = 10^{-9}$), the learning rate of equation (3) with 4,000 warm-up updates, dropout 0.1 on sub-layer outputs and embeddings, label smoothing 0.1. A checkpoint every ten minutes. At the end the last five are averaged, and the test split is translated with a beam of 4 and $\alpha = 0.6$.
#
# All of this is one command. It can be stopped and killed at will: the same command goes on, to the same bits.

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
# How much is the average worth? Compare it with the last checkpoint, on the *validation* split: decisions are made there, and the test split is for the report alone. (The search is greedy here, to be quick.)

# %%
# !python -m t2t_repro.evaluate --model_dir paper/model --split val --checkpoint latest --beam_size 1
# !python -m t2t_repro.evaluate --model_dir paper/model --split val --checkpoint averaged --beam_size 1

# %% [markdown]
# ## 6. Score (section 6.1)
#
# Two figures, never to be mixed:
#
# - **sacreBLEU** tokenises the plain text itself. Publish this one, with its signature.
# - **The paper's**: Moses' tokens, German compounds split at their hyphens. It is about 0.7 higher on newstest2014, and it is the one that 27.3 and 28.4 are.

# %%
result = Path("paper/model/result.json")
if result.exists():
    found = json.loads(result.read_text(encoding="utf-8"))
    print(f"{found['split']}, averaged over the steps {found['averaged_steps']}")
    print(f"sacreBLEU        {found['bleu']:.2f}  {found['signature']}")
    print(f"the paper's BLEU {found['paper_bleu']:.2f}  {found['paper_signature']}")
else:
    print("This training ended within its warm-up, so its test split was not scored.")

# %% [markdown]
# ## 7. What to compare with
#
# | model | newstest2013 (Table 3) | newstest2014 (Table 2) |
# |---|---|---|
# | base | 25.8 | 27.3 |
# | big | 26.4 | 28.4 |
#
# A figure from the left column beside one from the right is the most frequent mistake in the literature about this paper. Another one: tensor2tensor's later `transformer_base` is not this model. It is `t2t_base` here, with the norm before the sub-layers, another warm-up and more dropout. Many "reproductions" are of that.
#
# For the big model take the set `big`, for French `base_enfr` and `big_enfr`. On a machine with several GPUs all of them are used; with one, the batch is accumulated and the result is the same, later.
