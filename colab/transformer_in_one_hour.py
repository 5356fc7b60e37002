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
# This notebook explains *Attention Is All You Need* (Vaswani et al. 2017, [arXiv:1706.03762](https://arxiv.org/abs/1706.03762)) with running code.
#
# We first compute attention for three words by hand and compare the result with the layer. Then we look at masks, positions, the loss and the learning rate. Finally, we train a small Transformer that translates *half past four* to *halb fünf*, and plot its attention weights. Section numbers refer to the paper.
#
# Training takes about ten minutes on a CPU and less on a GPU. Everything else takes seconds.

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
from t2t_repro.command_line.cli import start_tensorflow

start_tensorflow()  # Suppresses TensorFlow's log messages at startup.

import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf

np.set_printoptions(precision=3, suppress=True)

# %% [markdown]
# ## 1. Attention in numbers (section 3.2.1)
#
# Equation (1) is
#
# $$\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\!\left(\frac{QK^T}{\sqrt{d_k}}\right)V$$
#
# Attention is a soft dictionary lookup. Each word has a *query*, a *key* and a *value*. The better a query matches a key, the larger the weight of the corresponding value in the result.
#
# Take three words with vectors of $d_k = 4$ numbers. To keep the arithmetic simple, each vector serves as query, key and value:
#
# | word | vector |
# |---|---|
# | a | 1 0 1 0 |
# | b | 0 2 0 2 |
# | c | 1 1 1 1 |
#
# **Dot products.** The dot products of a's query with the keys are a·a = 1+0+1+0 = 2, a·b = 0, a·c = 1+0+1+0 = 2.
#
# **Scale.** Divide by $\sqrt{4} = 2$: 1, 0, 1.
#
# **Softmax.** $e^1, e^0, e^1$ = 2.718, 1, 2.718. Their sum is 6.437, so the weights are 0.422, 0.155, 0.422.
#
# **Weighted sum.** 0.422 · (1 0 1 0) + 0.155 · (0 2 0 2) + 0.422 · (1 1 1 1) = **(0.845 0.733 0.845 0.733)**.
#
# Word a attends equally to itself and to c, and a little to b. The layer computes the same:

# %%
from t2t_repro import layers

x = tf.constant([[[1.0, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]]])  # (batch, words, 4)


def attention_without_projections(num_heads: int) -> layers.MultiHeadAttention:
    """Returns an attention layer whose learned projections are identity matrices."""
    layer = layers.MultiHeadAttention(num_heads, 4 // num_heads, 4 // num_heads)
    layer.build(x.shape, x.shape)
    layer.set_weights([np.eye(4)] * 4)
    return layer


layer = attention_without_projections(num_heads=1)
result, weights = layer(x, x, return_attention_scores=True)

print("weights, one row per query:")
print(weights[0, 0].numpy())
print("\noutput of the layer for a:", result[0, 0].numpy())

np.testing.assert_allclose(weights[0, 0, 0], [0.422, 0.155, 0.422], atol=5e-4)
np.testing.assert_allclose(result[0, 0], [0.845, 0.733, 0.845, 0.733], atol=5e-4)

# %% [markdown]
# In the second row, b matches itself so well (a dot product of 8, compared with 0 and 4) that the weight of its own value is 0.867. Without the division by $\sqrt{d_k}$ it would be 0.982. Large dot products saturate the softmax and make its gradient small, which is why the paper scales them.
#
# ## 2. Several heads (section 3.2.2)
#
# A single softmax gives each word one distribution over the other words. $h$ heads give it $h$ distributions: each head has its own weights and its own channels, and the results are concatenated. With two heads, the first head uses channels 1 and 2 of our words, the second channels 3 and 4. These channels are equal in the example above, so both heads would agree. If we change the vector of a, they differ:

# %%
two_heads = attention_without_projections(num_heads=2)
moved = tf.constant([[[1.0, 0, 0, 1], [0, 2, 0, 2], [1, 1, 1, 1]]])
result, weights = two_heads(moved, moved, return_attention_scores=True)
for head in range(2):
    print(f"head {head + 1}, weights of a:", weights[0, head, 0].numpy())
print("\nshapes: words", moved.shape, " weights", weights.shape)

# %% [markdown]
# The shapes are (batch, words, $d_{model}$) for words and (batch, heads, queries, keys) for weights. In a real layer, $W^Q$, $W^K$, $W^V$ and $W^O$ are learned; here they are identity matrices. The layer has the same call arguments as `keras.layers.MultiHeadAttention`, but no biases, as in the paper.
#
# ## 3. Masks (section 3.2.3)
#
# Two kinds of keys must be masked. *Padding*: the sentences of a batch are padded to the length of the longest one. *The future*: the decoder learns to predict word $t$, so its input must not contain word $t$. Masks are true for visible keys. For the others, $-10^9$ is added to the logits, so that their weight after the softmax is 0.

# %%
causal = layers.causal_mask(6)[0].numpy()
padding = layers.padding_mask(tf.constant([[5, 9, 7, 1, 0, 0]]))[0].numpy()
figure, axes = plt.subplots(1, 2, figsize=(8, 3.4))
for ax, mask, title in (
    (axes[0], causal, "decoder: the future is masked"),
    (axes[1], np.repeat(padding, 6, axis=0), "a sentence of 4 tokens, padded to 6"),
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
# During training, the input of the decoder is the reference translation, shifted right by one position, instead of the decoder's own output. It predicts all words in parallel: the second word from the first, the third from the first two, and so on. This is called *teacher forcing*.
#
# tensor2tensor, the code behind the paper, has no start symbol. It shifts the *embeddings* and inserts a vector of zeros, so the first decoder input is only the positional encoding. We build a very small model and check both claims.

# %%
import t2t_repro

model = t2t_repro.Transformer(50, d_model=16, d_ff=32, num_heads=2, num_layers=1)
source = tf.constant([[11, 12, 13, 1]])  # 1 is the end of a sentence.
target = tf.constant([[21, 22, 23, 24, 1]])

print("target               ", target.numpy()[0])
print("first decoder input  ", model.decoder_input(target)[0, 0].numpy())
print("encoding of position 0", np.repeat([0.0, 1.0], 8))
np.testing.assert_allclose(model.decoder_input(target)[0, 0], np.repeat([0, 1], 8))

# If the fourth word changes, the predictions of words one to four do not.
changed = tf.constant([[21, 22, 23, 42, 1]])
logits = model({"inputs": source, "targets": target})
others = model({"inputs": source, "targets": changed})
difference = tf.abs(logits - others)
by_position = tf.reduce_max(difference, axis=-1)[0].numpy()
print("\nlargest change of a logit at positions 1 to 5:", by_position)
assert by_position[:4].max() < 1e-5 < by_position[4]

# %% [markdown]
# Only position 5, which predicts the end of the sentence, depends on the fourth word.
#
# ## 5. Positions (section 3.5)
#
# Attention is independent of word order: shuffled words yield the same weighted sums. Therefore a positional encoding is added to each embedding, which consists of sinusoids from short to long wavelengths. In the paper, sines and cosines alternate; in tensor2tensor, all sines precede all cosines. Both work equally well, but trained weights fit only one of them, so this package implements both.

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
axes[2].set(xlabel="position", title="dot product with position 50")
figure.tight_layout()
plt.show()

# %% [markdown]
# The right plot shows why this works: the dot product of two encodings depends only on their distance. It is largest at distance 0 and decreases in waves. From this, the model can learn relations such as "the previous word".
#
# ## 6. Loss and learning rate (sections 5.3 and 5.4)
#
# **Label smoothing.** The target distribution assigns probability 0.9 to the correct word, and distributes the remaining 0.1 over all other words. The model learns to be less certain, which increases perplexity but improves translations. The entropy of the target distribution is subtracted from the loss, so that the loss of a perfect model is 0.
#
# **Learning rate.** Equation (3) is $d_{model}^{-0.5} \cdot \min(n^{-0.5},\ n \cdot warmup^{-1.5})$ for step $n$. The rate increases during 4,000 steps and then decreases with the inverse square root of the step.

# %%
from t2t_repro import losses, schedules

# Predicted probabilities in a vocabulary of three; the second token is correct.
logits = tf.math.log([[[0.05, 0.9, 0.05]]])
for smoothing in (0.0, 0.1):
    loss = losses.LabelSmoothedCrossEntropy(label_smoothing=smoothing)
    print(f"smoothing {smoothing}: {float(loss([[1]], logits)):.3f} nats")

updates = np.arange(1, 20_001)
figure, ax = plt.subplots(figsize=(7, 3.2))
for d_model, warmup in ((512, 4000), (512, 8000), (1024, 4000)):
    rate = schedules.Schedule("paper", d_model=d_model, warmup_steps=warmup)
    rates = rate(tf.constant(updates - 1))
    ax.plot(updates, rates, label=f"d_model {d_model}, warm-up {warmup:,}")
ax.set(xlabel="update", ylabel="learning rate", ylim=(0, None))
ax.legend(frameon=False)
plt.show()
peak = float(schedules.Schedule("paper", d_model=512, warmup_steps=4000)(3999))
print(f"peak learning rate of the base model: {peak:.6f}")
assert abs(peak - 512**-0.5 * 4000**-0.5) < 1e-9

# %% [markdown]
# ## 7. Train a model
#
# The built-in corpus contains English phrases with numbers, dates, times and prices, and their German translations. A word-by-word translation is not sufficient: *twenty-one* is *einundzwanzig* (one-and-twenty), and *half past four* is *halb fünf* (half five).

# %%
from t2t_repro import problems

corpus = problems.create("translate_ende_numbers")
for (english, german), _ in zip(corpus.pairs("train"), range(4), strict=False):
    print(f"{english}\n    {german}")
print("\ntest set:", corpus.description("test"))

# %% [markdown]
# One command runs the procedure of section 5: it learns the vocabulary, forms batches of sentences of similar length, trains with Adam and the schedule above, averages checkpoints, and computes BLEU with beam search. The hyper-parameter set `tiny` is the paper's recipe with $d_{model} = 128$ and 2 layers instead of 512 and 6. It uses no dropout, because training takes only a few epochs.

# %%
SET = "tiny"
if QUICK:
    SET = "tiny,d_model=64,d_ff=128,tokens_per_batch=512,train_steps=60"
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
# ## 8. Translate
#
# `load` returns the model with averaged weights. It translates with a beam of 4.

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
# ## 9. Plot the attention weights
#
# We plot the weights of each head of the *cross-attention* for one sentence pair. In cross-attention, the decoder attends to the source sentence. Each row is a German subword that is being predicted, each column an English subword. Dark cells are large weights.

# %%
from t2t_repro.models.attention_maps import attention_maps

english, german = next(
    pair for pair in corpus.pairs("test") if 5 <= len(pair[0].split()) <= 7
)
source = trained.tokenizer.encode(tf.constant([english])).to_tensor()
target = trained.tokenizer.encode(tf.constant([german])).to_tensor()
maps = attention_maps(trained.model, source, target)


def pieces(ids: tf.Tensor) -> list[str]:
    """Returns the text of each subword, and a square for the end of the sentence."""
    texts = trained.tokenizer.decode(tf.reshape(ids, [-1, 1])).numpy()
    return [text.decode().strip() or "□" for text in texts]


def draw(name: str, rows: list[str], columns: list[str]) -> None:
    """Plots the attention weights of each head of an attention layer."""
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
# After seconds of training, the weights are nearly uniform. After a complete training run, look for heads that follow the German word order, and for heads that attend to the same position for every word. In the encoder, the English words attend to each other:

# %%
draw("encoder/layer_0/self_attention", pieces(source), pieces(source))

# %% [markdown]
# ## 10. Export an interactive page
#
# The next cell writes a single HTML file with your model, its weights and its tokenizer. It works in any browser without a network connection. Download `hour/transformer.html` and open it: an essay explains the paper section by section, with figures that your model computes for a sentence of your choice. In the other views, step through the beam search, explore the architecture of figure 1, or disable a head.

# %%
# !python -m t2t_repro.visualize --model_dir hour/model --live --output hour/transformer.html

# %% [markdown]
# ## Next steps
#
# - Continue with the notebooks *Train on your own text*, *Serve it* and *Reproduce the paper*.
# - `docs/explanation/paper_in_code.md` shows the code of each equation, section by section.
# - The paper's base model has 6 layers, $d_{model} = 512$, 8 heads, dropout and 63 million weights. Otherwise it is the model of this notebook.
