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
# # The Transformer in one hour
#
# *Attention Is All You Need* (Vaswani et al. 2017, [arXiv:1706.03762](https://arxiv.org/abs/1706.03762)), with code that runs.
#
# We compute attention for three words by hand and see the layer agree. We look at what the decoder may see and what it may not, at positions, at the loss and the learning rate. Then we train a small Transformer that turns *half past four* into *halb fünf*, and look at what each word looks at. Section numbers are the paper's.
#
# On a CPU the training takes about ten minutes, on a GPU less. All else takes seconds.

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

# The tests of this notebook train for seconds. You want the whole training.
QUICK = os.environ.get("T2T_REPRO_QUICK") == "1"

# %%
from t2t_repro.command_line.cli import start_tensorflow

start_tensorflow()  # Without the lines that TensorFlow logs while it starts.

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf

np.set_printoptions(precision=3, suppress=True)

# %% [markdown]
# ## 1. Attention, by numbers (section 3.2.1)
#
# Equation (1) is
#
# $$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\!\left(\frac{QK^T}{\sqrt{d_k}}\right)V$$
#
# Read it as a soft look-up. Every word asks a question, its *query*; every word offers a *key* and a *value*. How well a query fits a key decides how much of the value is taken.
#
# Take three words with vectors of $d_k = 4$ numbers. To keep the arithmetic small, each vector is query, key and value at once:
#
# | word | vector |
# |---|---|
# | a | 1 0 1 0 |
# | b | 0 2 0 2 |
# | c | 1 1 1 1 |
#
# **Products.** The query of a with the keys: a·a = 1+0+1+0 = 2, a·b = 0, a·c = 1+0+1+0 = 2.
#
# **Scale.** Divide by $\sqrt{4} = 2$: 1, 0, 1.
#
# **Softmax.** $e^1, e^0, e^1$ = 2.718, 1, 2.718. Their sum is 6.437, so the weights are 0.422, 0.155, 0.422.
#
# **Mix.** 0.422 · (1 0 1 0) + 0.155 · (0 2 0 2) + 0.422 · (1 1 1 1) = **(0.845 0.733 0.845 0.733)**.
#
# Word a has looked at itself and at c in equal parts, and a little at b. Now the layer:

# %%
from t2t_repro import layers

x = tf.constant([[[1.0, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]]])  # (batch, words, 4)


def attention_without_projections(num_heads: int) -> layers.MultiHeadAttention:
    """Returns the layer with identity matrices in the place of what is learned."""
    layer = layers.MultiHeadAttention(num_heads, 4 // num_heads, 4 // num_heads)
    layer.build(x.shape, x.shape)
    layer.set_weights([np.eye(4)] * 4)
    return layer


layer = attention_without_projections(num_heads=1)
result, weights = layer(x, x, return_attention_scores=True)

print("weights, a row for each query:")
print(weights[0, 0].numpy())
print("\nwhat the layer gives for a:", result[0, 0].numpy())

np.testing.assert_allclose(weights[0, 0, 0], [0.422, 0.155, 0.422], atol=5e-4)
np.testing.assert_allclose(result[0, 0], [0.845, 0.733, 0.845, 0.733], atol=5e-4)

# %% [markdown]
# The second row is worth a glance. b fits itself so well (8 against 0 and 4 before the scaling) that it takes 0.867 of its own value. Without the division by $\sqrt{d_k}$ it would take 0.982: large products make the softmax hard and its gradient small, which is why the paper scales.
#
# ## 2. Several heads (section 3.2.2)
#
# One softmax per word can look in one way. $h$ heads look in $h$ ways: each has a share of the channels, its own weights, and the results are put side by side. With two heads, the first sees channels 1 and 2 of our words, the second channels 3 and 4. Here these are alike, so both heads agree. Change one channel and they differ:

# %%
two_heads = attention_without_projections(num_heads=2)
moved = tf.constant([[[1.0, 0, 0, 1], [0, 2, 0, 2], [1, 1, 1, 1]]])
result, weights = two_heads(moved, moved, return_attention_scores=True)
for head in range(2):
    print(f"head {head + 1}, where a looks:", weights[0, head, 0].numpy())
print("\nshapes: words", moved.shape, " weights", weights.shape)

# %% [markdown]
# The shapes are (batch, words, $d_{model}$) for words and (batch, heads, queries, keys) for weights. In a real layer $W^Q$, $W^K$, $W^V$ and $W^O$ are learned; ours were identities. The layer is called as `keras.layers.MultiHeadAttention` is; only it has no biases, as the paper's.
#
# ## 3. What may be seen (section 3.2.3)
#
# Two things must be hidden. *Padding*: sentences of a batch are filled up to the longest. *The future*: the decoder learns to predict word $t$, so it must not see it. A mask says what may be seen; where it does not, $-10^9$ is added before the softmax, after which the weight is 0.

# %%
seen = layers.causal_mask(6)[0].numpy()
symbols = layers.padding_mask(tf.constant([[5, 9, 7, 1, 0, 0]]))[0].numpy()
figure, axes = plt.subplots(1, 2, figsize=(8, 3.4))
for ax, mask, title in (
    (axes[0], seen, "decoder: the future is hidden"),
    (axes[1], np.repeat(symbols, 6, axis=0), "a sentence of 4 among longer ones"),
):
    ax.imshow(~mask, cmap="Greys", vmin=0, vmax=1.6)
    ax.set(xlabel="key", ylabel="query", title=title)
    ax.set_xticks(range(6), range(1, 7))
    ax.set_yticks(range(6), range(1, 7))
figure.tight_layout()
plt.show()

# %% [markdown]
# ## 4. Teacher forcing and the shift
#
# During training the decoder does not write and read its own words. It is given the right translation, moved one place to the right, and predicts all words at once: from nothing the first, from the first the second, and so on. That is *teacher forcing*.
#
# tensor2tensor, which made the paper's figures, has no start symbol. It shifts the *embeddings*: a vector of zeros comes first, so the first position sees the position signal alone. We build a very small model and check both claims.

# %%
import t2t_repro

model = t2t_repro.Transformer(50, d_model=16, d_ff=32, num_heads=2, num_layers=1)
source = tf.constant([[11, 12, 13, 1]])  # 1 is the end of a sentence.
target = tf.constant([[21, 22, 23, 24, 1]])

print("target               ", target.numpy()[0])
print("first decoder input  ", model.decoder_input(target)[0, 0].numpy())
print("position signal of 0 ", np.repeat([0.0, 1.0], 8))
np.testing.assert_allclose(model.decoder_input(target)[0, 0], np.repeat([0, 1], 8))

# Change the fourth word: what is predicted for words one to four stays the same.
changed = tf.constant([[21, 22, 23, 42, 1]])
logits = model({"inputs": source, "targets": target})
others = model({"inputs": source, "targets": changed})
difference = tf.abs(logits - others)
by_position = tf.reduce_max(difference, axis=-1)[0].numpy()
print("\nlargest change of a logit at positions 1 to 5:", by_position)
assert by_position[:4].max() < 1e-5 < by_position[4]

# %% [markdown]
# Position 5, which predicts the end of the sentence, has read the fourth word and changes. The others could not know.
#
# ## 5. Positions (section 3.5)
#
# Attention does not know order: shuffle the words, and the same sums come out. So a signal is added to each embedding: waves, from fast to slow. The paper prints sines and cosines in turn; tensor2tensor has all sines first, then all cosines. The model does not care, but its weights do, so this package has both.

# %%
from t2t_repro.layers.position import sinusoid, sinusoid_paper

positions = tf.range(100)
figure, axes = plt.subplots(1, 3, figsize=(13, 3.6))
for ax, signal, title in (
    (axes[0], sinusoid_paper(positions, 64), "the paper's formula"),
    (axes[1], sinusoid(positions, 64), "tensor2tensor's"),
):
    image = ax.imshow(signal, aspect="auto", cmap="RdBu", vmin=-1, vmax=1)
    ax.set(xlabel="channel", ylabel="position", title=title)
figure.colorbar(image, ax=axes[1])
signal = sinusoid(positions, 64).numpy()
axes[2].plot(signal @ signal[50], color="tab:blue")
axes[2].set(xlabel="position", title="how alike position 50 is to the others")
figure.tight_layout()
plt.show()

# %% [markdown]
# The right picture is why it works: the product of two signals depends on their distance alone: it is greatest at distance 0 and falls, in waves, as it grows. The next linear layer can find "the word before" from it.
#
# ## 6. Loss and learning rate (sections 5.3 and 5.4)
#
# **Label smoothing.** The right word shall have probability 0.9, not 1; the remaining 0.1 is spread over all others. The model learns to be less sure, its perplexity gets worse and its translations better. The entropy of that soft target is subtracted from the loss, so that a perfect model has loss 0.
#
# **Learning rate.** Equation (3): $d_{model}^{-0.5} \cdot \min(n^{-0.5},\ n \cdot warmup^{-1.5})$. It rises for 4,000 updates and then falls with the root of their number.

# %%
from t2t_repro import losses, schedules

# Three symbols may follow. The second is right, and this is what the model says:
logits = tf.math.log([[[0.05, 0.9, 0.05]]])
for smoothing in (0.0, 0.1):
    loss = losses.LabelSmoothedCrossEntropy(label_smoothing=smoothing)
    print(f"smoothing {smoothing}: {float(loss([[1]], logits)):.3f} nats")

updates = np.arange(1, 20_001)
figure, ax = plt.subplots(figsize=(7, 3.2))
for d_model, warmup in ((512, 4000), (512, 8000), (1024, 4000)):
    rates = schedules.Schedule("paper", d_model, warmup)(tf.constant(updates - 1))
    ax.plot(updates, rates, label=f"d_model {d_model}, warm-up {warmup:,}")
ax.set(xlabel="update", ylabel="learning rate", ylim=(0, None))
ax.legend(frameon=False)
plt.show()
peak = float(schedules.Schedule("paper", 512, 4000)(3999))
print(f"the base model's greatest rate: {peak:.6f}")
assert abs(peak - 512**-0.5 * 4000**-0.5) < 1e-9

# %% [markdown]
# ## 7. Train one
#
# The corpus is built in: English phrases with numbers, dates, times and prices, and the German ones. *twenty-one* is *einundzwanzig*, one-and-twenty, and *half past four* is *halb fünf*, half five. Copying word by word will not do.

# %%
from t2t_repro import problems

corpus = problems.create("translate_ende_numbers")
for (english, german), _ in zip(corpus.pairs("train"), range(4), strict=False):
    print(f"{english}\n    {german}")
print("\nheld out:", corpus.description("test"))

# %% [markdown]
# One command does what section 5 of the paper describes: subwords, batches of sentences of like length, Adam with the schedule above, dropout, averaged checkpoints, beam search, BLEU. The set `tiny` is the paper's recipe with $d_{model} = 128$ and 2 layers instead of 512 and 6, and without dropout, because it sees each pair only a few times.

# %%
SET = "tiny"
if QUICK:
    SET = "tiny,d_model=64,d_ff=128,tokens_per_batch=1024,train_steps=60"
    SET += ",warmup_steps=80,checkpoint_steps=30,average_last=2,eval_steps=0"

# %%
# !python -m t2t_repro.train --hparams {SET} --model_dir hour/model --data_dir hour/data

# %%
log = np.genfromtxt("hour/model/training_log.tsv", names=True, delimiter="\t")
figure, axes = plt.subplots(1, 2, figsize=(10, 3.2))
axes[0].plot(log["step"], log["loss"], marker=".")
axes[0].set(xlabel="update", ylabel="loss, nats per subword", ylim=(0, None))
axes[1].plot(log["step"], log["learning_rate"], marker=".", color="tab:orange")
axes[1].set(xlabel="update", ylabel="learning rate", ylim=(0, None))
figure.tight_layout()
plt.show()
assert log["loss"][-1] < log["loss"][0]

# %% [markdown]
# ## 8. Ask it
#
# From here on the averaged weights translate, with a beam of 4.

# %%
trained = t2t_repro.load("hour/model")
sentences = [
    "half past four on the twenty-first of May",
    "the heavy table costs seventeen euros and forty-nine cents",
    "the bus to Cologne leaves at eight minutes past eleven",
]
translations = trained.translate(sentences)
log_probs = trained.score(zip(sentences, translations, strict=True))
for english, german, log_prob in zip(sentences, translations, log_probs, strict=True):
    print(f"{english}\n    {german}   (log probability {log_prob:.2f})")
result = Path("hour/model/result.json")
if result.exists():
    score = json.loads(result.read_text(encoding="utf-8"))
    print(f"\ntest split: BLEU {score['bleu']:.2f}  {score['signature']}")

# %% [markdown]
# ## 9. Look at what it looks at
#
# We give the model a pair and draw the weights of every head in the *cross-attention*, where the decoder reads the source. A row is a German subword that is about to be written, a column an English one that can be read. Dark is much.

# %%
from t2t_repro.models.attention_maps import attention_maps

english, german = next(
    pair for pair in corpus.pairs("test") if 5 <= len(pair[0].split()) <= 7
)
source = trained.tokenizer.encode(tf.constant([english])).to_tensor()
target = trained.tokenizer.encode(tf.constant([german])).to_tensor()
maps = attention_maps(trained.model, source, target)


def pieces(ids: tf.Tensor) -> list[str]:
    """Returns the text of each subword; the end of the sentence is a square."""
    texts = trained.tokenizer.decode(tf.reshape(ids, [-1, 1])).numpy()
    return [text.decode().strip() or "□" for text in texts]


def draw(name: str, rows: list[str], columns: list[str]) -> None:
    """Draws the weights of every head of an attention."""
    weights = maps[name][0].numpy()
    heads = len(weights)
    size = (1.2 + heads * (0.6 + 0.22 * len(columns)), 1.4 + 0.24 * len(rows))
    figure, axes = plt.subplots(1, heads, figsize=size, sharey=True)
    for number, ax in enumerate(axes):
        ax.imshow(weights[number], cmap="Blues", vmin=0, vmax=1)
        ax.set_title(f"head {number + 1}", fontsize=9)
        ax.set_xticks(range(len(columns)), columns, rotation=90, fontsize=8)
        ax.set_yticks(range(len(rows)), rows, fontsize=8)
    figure.suptitle(name, fontsize=10)
    figure.tight_layout()
    plt.show()


print(f"{english}\n{german}")
for layer_number in range(trained.model.decoder.num_layers):
    draw(
        f"decoder/layer_{layer_number}/cross_attention",
        pieces(target),
        pieces(source),
    )
np.testing.assert_allclose(
    tf.reduce_sum(maps["decoder/layer_0/cross_attention"], axis=-1), 1.0, atol=1e-5
)

# %% [markdown]
# After seconds of training the weights are nearly even. After a whole training, look for heads that follow the words in German order, and for heads that rest on one place whatever the word. In the encoder, the English words look at each other:

# %%
draw("encoder/layer_0/self_attention", pieces(source), pieces(source))

# %% [markdown]
# ## 10. Take it with you
#
# One file holds your model, its weights and its tokenizer, and translates in any browser without a network. Download `hour/transformer.html` and open it: step through the beam search, click through figure 1, switch off a head.

# %%
# !python -m t2t_repro.visualize --model_dir hour/model --live --text "half past four" --output hour/transformer.html

# %% [markdown]
# ## Where to go now
#
# - *Train on your own text*, *Serve it* and *Reproduce the paper* are the notebooks beside this one.
# - *The paper, read in the code* (docs/explanation/paper_in_code.md) walks the paper's sections with the lines that are each equation.
# - The paper's base model has 6 layers, $d_{model} = 512$, 8 heads and 63 million weights. It differs from yours in these numbers alone.
