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
# # Find the fault: twelve broken Transformers
#
# A fault in the code of a Transformer rarely raises an error. The model trains, its loss decreases, and it is worse than it should be, or useless. In this notebook, you meet twelve models, each with one fault in a line or two of code. You examine them, make a diagnosis, and write down the check that would have found the fault.
#
# You should have read *Attention Is All You Need* ([arXiv:1706.03762](https://arxiv.org/abs/1706.03762)) or the notebook *The Transformer in one hour*. Training all models takes about eight minutes on two cores. The page `docs/tutorial/clinic.md` shows the results without training.

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

from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any
from unittest import mock

import keras
import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf

from t2t_repro import Transformer, layers, losses, problems, schedules
from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.evaluation.bleu import sacre_bleu
from t2t_repro.layers import attention
from t2t_repro.models import transformer
from t2t_repro.models.attention_maps import attention_maps
from t2t_repro.models.generate import generate, make_decoder
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.vocabulary import build_vocabulary

# %% [markdown]
# ## 1. The healthy model
#
# The corpus pairs English numbers, dates and prices with German translations. We keep sentences of at most 12 subwords. The model is the paper's with one layer in each stack, $d_{model} = 64$ and four heads. It trains for 200 steps of 64 sentences.

# %%
PAIRS, MAX_LENGTH, STEPS, TESTED = 20_000, 12, 200, 200
if QUICK:
    PAIRS, MAX_LENGTH, STEPS, TESTED = 2_000, 6, 1, 2
VOCAB_SIZE, BATCH, WARMUP = 1000, 64, 100
D_MODEL, HEADS, D_K = 64, 4, 16

corpus = problems.create("translate_ende_numbers")
folder = Path("clinic")
folder.mkdir(exist_ok=True)
lines = chain.from_iterable(islice(corpus.pairs("train"), PAIRS))
build_vocabulary("sentencepiece", lines, VOCAB_SIZE, folder / "vocab.model")
tokenizer = load_tokenizer(folder / "vocab.model")


def encode(split: str, count: int) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
    """Encodes pairs of at most MAX_LENGTH subwords on both sides, int32."""
    pairs = islice(corpus.pairs(split), count)
    sides = [tokenizer.encode(tf.constant(side)) for side in zip(*pairs, strict=True)]
    short = tf.reduce_all([side.row_lengths() <= MAX_LENGTH for side in sides], axis=0)
    source, target = (tf.ragged.boolean_mask(side, short) for side in sides)
    return source, target


def with_labels(source: tf.RaggedTensor, target: tf.RaggedTensor) -> tuple[Any, Any]:
    """Pads a batch with 0; the targets are also the labels."""
    labels = target.to_tensor()
    return {"inputs": source.to_tensor(), "targets": labels}, labels


source, target = encode("train", PAIRS)
data = tf.data.Dataset.from_tensor_slices((source, target))
data = data.shuffle(PAIRS, seed=1).repeat().ragged_batch(BATCH).map(with_labels)
test = with_labels(*(side[:TESTED] for side in encode("test", PAIRS)))


def decode(ids: tf.Tensor) -> list[str]:
    """Converts rows of subwords to text."""
    return [text.decode() for text in tokenizer.decode(ids).numpy()]


# %%
rate = schedules.Schedule("paper", scale=0.5, d_model=D_MODEL, warmup_steps=WARMUP)
loss = losses.LabelSmoothedCrossEntropy(label_smoothing=0.1)


@dataclass
class Patient:
    """A trained model and its symptoms: values on sentences that it did not see."""

    model: Transformer
    curve: list[float]  # Training loss, nats per subword; one value for ten steps.
    loss: float  # With teacher forcing.
    accuracy: float  # Percentage of correct subwords, with teacher forcing.
    bleu: float  # Score of the translations that it generates itself.
    translations: list[str]
    maps: dict[str, np.ndarray]  # Attention weights, (heads, queries, keys).


def examine() -> Patient:
    """Trains a model with the current code and measures its symptoms."""
    keras.utils.set_random_seed(1)
    size = {"d_model": D_MODEL, "d_ff": 4 * D_MODEL, "num_heads": HEADS}
    model = Transformer(tokenizer.vocab_size, num_layers=1, dropout=0.0, **size)
    adam = keras.optimizers.Adam(rate, beta_1=0.9, beta_2=0.98, epsilon=1e-9)
    model.compile(adam, loss, jit_compile=False, run_eagerly=QUICK)
    steps = min(STEPS, 10)
    settings = {"epochs": STEPS // steps, "steps_per_epoch": steps, "verbose": 0}
    curve = model.fit(data, shuffle=False, **settings).history["loss"]

    inputs, labels = test
    logits = model(inputs)
    accuracy = losses.MaskedAccuracy()(labels, logits)
    greedy = DecodingConfig(beam_size=1, extra_length=4)
    found = generate(greedy, make_decoder(model, 1), inputs["inputs"])
    translations = decode(found.ids[:, 0])
    bleu = sacre_bleu(translations, decode(labels)).score
    maps = attention_maps(model, *SHOWN)
    return Patient(
        *(model, curve, float(loss(labels, logits)), 100 * float(accuracy), bleu),
        *(translations, {name: value[0].numpy() for name, value in maps.items()}),
    )


# The sentence whose attention is shown, with three positions of padding.
SHOWN = (tf.pad(test[0]["inputs"][:1], [[0, 0], [0, 3]]), test[1][:1])

# %% [markdown]
# We measure each model in two ways, on sentences that it did not see. With *teacher forcing*, the decoder reads the reference translation, as in training; this yields the loss and the accuracy. For BLEU, it reads its own output, as in use.
#
# ## 2. The faults
#
# The next cell contains the answers, so Colab and JupyterLab fold it. It replaces one function of the package for each fault. `with_fault(3)` then switches fault 3 on within a `with` block.

# %% cellView="form" jupyter={"source_hidden": true}
# @title The faults: open this cell after you have made a diagnosis


def normalize_over_queries(self, query, key, mask):
    """Fault 4; sound: axis=-1."""
    logits = tf.matmul(query, key, transpose_b=True)
    if mask is not None:
        logits += (1.0 - tf.cast(mask, tf.float32)) * attention.MASKED
    return tf.nn.softmax(logits, axis=-2)


def embed_without_scale(self, inputs, reverse=False):
    """Fault 7; sound: times d_model**0.5."""
    if reverse:
        return self.matmul(inputs, self.table)
    is_word = tf.cast(tf.not_equal(inputs, 0), tf.float32)[..., None]
    return self.lookup(self.table, inputs) * is_word


def smooth_with_wrong_sum(logits, targets, label_smoothing):
    """Fault 9; sound: true = 1.0 - label_smoothing."""
    size = logits.shape[-1]
    true, others = 1.0, label_smoothing / (size - 1)
    goal = others + (true - others) * tf.one_hot(targets, size)
    entropy = losses.entropy_of_smoothing(label_smoothing, size)
    return -tf.reduce_sum(goal * tf.nn.log_softmax(logits), axis=-1) - entropy


def average_over_everything(self, y_true, y_pred, sample_weight=None):
    """Fault 8; sound: the mean over the words only."""
    return tf.reduce_mean(self.call(y_true, y_pred))


def add_after_norm(self, x, sublayer):
    """Fault 10; sound: layer_norm(x + drop(sublayer(x)))."""
    return x + self.layer_norm(self.drop(sublayer(x)))


Attention = layers.MultiHeadAttention


def repeat_first_head(self, x, split=Attention.split_heads):
    """Fault 11; sound: split(self, x)."""
    return tf.repeat(split(self, x)[:, :1], self.num_heads, axis=1)


def start_at_full_rate(self, step):
    """Fault 12; sound: times min(n**-0.5, n * WARMUP**-1.5)."""
    n = tf.cast(step, tf.float32) + 1.0
    return 0.5 * D_MODEL**-0.5 * n**-0.5


FAULTS = [  # The owner of a function, the function's name, and what replaces it.
    # 1. Sound: a key is visible if its position is at most that of the query.
    (attention, "causal_mask", lambda length: tf.ones((1, length, length), tf.bool)),
    # 2. Sound: not_equal.
    (transformer, "padding_mask", lambda ids, with_end: tf.equal(ids, 0)[:, None]),
    # 3. Sound: the targets are shifted to the right by one position.
    (Transformer, "decoder_input", lambda self, x, at=None: self.step_input(x, at)),
    (Attention, "attention_weights", normalize_over_queries),
    # 5. Sound: times d_k**-0.5.
    (Attention, "project_query", lambda self, x: self.split_heads(self.query(x))),
    # 6. Sound: plus the sinusoids of the positions.
    (layers.PositionalEncoding, "call", lambda self, x, positions=None: x),
    (layers.TokenEmbedding, "call", embed_without_scale),
    (losses.LabelSmoothedCrossEntropy, "__call__", average_over_everything),
    (losses, "smoothed_cross_entropy", smooth_with_wrong_sum),
    (layers.Residual, "call", add_after_norm),
    (Attention, "split_heads", repeat_first_head),
    (schedules.Schedule, "__call__", start_at_full_rate),
]


def with_fault(number: int) -> Any:
    """Replaces the code within a `with` block; 0 replaces nothing."""
    return mock.patch.object(*FAULTS[number - 1]) if number else nullcontext()


# %% [markdown]
# ## 3. The symptoms
#
# Complete training runs gave these values. Compare each patient with the healthy model: does the model that learned well also translate well? What differs between training and translation?
#
# | patient | loss | accuracy | BLEU | symptom |
# |---|---|---|---|---|
# | 0, healthy | 0.673 | 84.8 % | 56.4 |  |
# | 1 | 0.135 | 98.9 % | 0.0 | almost all words right, but its own translations repeat one word: *Tür Tür Tür Tür* |
# | 2 | 2.020 | 38.6 % | 0.2 | fluent German that has nothing to do with the source: *der Lehrer wird das schöne Fenster.* |
# | 3 | 0.026 | 100.0 % | 0.0 | every word right, and the lowest loss; its own translations repeat one letter: *g g g g* |
# | 4 | 0.943 | 76.2 % | 0.0 | three words of four right, but its own translations are empty; the attention weights of a query add up to anything from 0 to 15 |
# | 5 | 1.052 | 72.8 % | 33.1 | learns more slowly |
# | 6 | 0.781 | 82.0 % | 46.5 | a little less accurate than the healthy model |
# | 7 | 1.483 | 59.1 % | 15.5 | learns most slowly of those that learn: broken words |
# | 8 | 0.420 | 86.1 % | 57.5 | a much lower loss than the healthy model, but neither accuracy nor translations to match |
# | 9 | 0.704 | 86.6 % | 61.7 | silent: nothing is worse |
# | 10 | 0.756 | 83.7 % | 53.1 | silent: nothing is clearly worse |
# | 11 | 0.926 | 75.9 % | 41.1 | learns more slowly; the four heads have the same attention |
# | 12 | 4.289 | 13.2 % | 0.0 | the loss stays above 4; its own translations are empty |

# %%
patients: list[Patient] = []
for number in range(13):
    with with_fault(number):
        patients.append(it := examine())
    values = f"loss {it.loss:6.3f}  accuracy {it.accuracy:5.1f} %  BLEU {it.bleu:5.1f}"
    print(f"{number:2}  {values}  {it.translations[0]}", flush=True)

# %%
figure, axes = plt.subplots(3, 4, figsize=(13, 7), sharex=True, sharey=True)
for number, ax in enumerate(axes.flat, 1):
    for it, color in ((patients[0], "tab:gray"), (patients[number], "tab:red")):
        steps = np.linspace(STEPS / len(it.curve), STEPS, len(it.curve))
        ax.plot(steps, it.curve, color=color)
    ax.set(title=f"patient {number}", ylim=(0, 6))
figure.supxlabel("step")
figure.supylabel("training loss, nats per subword (gray: the healthy model)")
figure.tight_layout()
plt.show()


# %%
def pieces(ids: tf.Tensor) -> list[str]:
    """Returns the text of each subword, and a square for the end and for padding."""
    return [text.strip() or "□" for text in decode(tf.reshape(ids, [-1, 1]))]


def draw(name: str, numbers: list[int]) -> None:
    """Plots an attention layer of several patients, one row each and one head each."""
    rows = pieces(SHOWN[1])
    columns = pieces(SHOWN[0]) if "cross" in name else rows
    figure, axes = plt.subplots(
        *(len(numbers), HEADS), figsize=(12, 2.6 * len(numbers)), squeeze=False
    )
    for line, number in zip(axes, numbers, strict=True):
        for head, ax in enumerate(line):
            ax.imshow(patients[number].maps[name][head], cmap="Blues", vmin=0, vmax=1)
            ax.set_title(f"patient {number}, head {head + 1}", fontsize=9)
            ax.set_xticks(range(len(columns)), columns, rotation=90, fontsize=8)
            ax.set_yticks(range(len(rows)), rows, fontsize=8)
    figure.suptitle(name)
    figure.tight_layout()
    plt.show()


draw("decoder/layer_0/self_attention", [0, 1])
draw("decoder/layer_0/cross_attention", [0, 2, 4, 11])

# %% [markdown]
# ## 4. The diagnosis
#
# Write down the cause of each symptom before you continue. Then open the cell of section 2, where a comment or docstring gives the sound code, and the page `docs/tutorial/clinic.md`, which explains cause and repair. The next cell verifies the symptoms that this text describes.


# %%
SYMPTOMS = {
    "learns, cannot translate": lambda p, ok: p.accuracy > 70 and p.bleu < 5,
    "does not learn": lambda p, ok: p.accuracy < 50 and p.bleu < 5,
    "lags": lambda p, ok: p.accuracy < ok.accuracy - 2 and p.bleu < ok.bleu - 5,
    "flatters": lambda p, ok: p.loss < 0.8 * ok.loss and p.accuracy < ok.accuracy + 3,
    "has equal heads": lambda p, _: all(
        np.ptp(w, 0).max() < 1e-5 for w in p.maps.values()
    ),
    "is silent": lambda p, ok: abs(p.accuracy - ok.accuracy) < 5 > ok.bleu - p.bleu,
}
unable, lags, silent = "learns, cannot translate", "lags", "is silent"
OBSERVED = [unable, "does not learn", unable, unable, lags, lags, lags, "flatters"]
OBSERVED += [silent, silent, "has equal heads", "does not learn"]
for number, symptom in enumerate(OBSERVED, 1):
    shown = SYMPTOMS[symptom](patients[number], patients[0])
    print(f"{number:2} {'yes' if shown else 'NO'}: {symptom}")

# %% [markdown]
# ## 5. The checks
#
# Two faults are silent, and others appear only after a training. A check needs none: it changes an input that must not matter, or compares one value with a formula of the paper. Each check must fail with its fault and accept the repaired code with the weights of the patient.

# %%
SOURCE = tf.constant([[7, 8, 9, 1]])
TARGET = tf.constant([[21, 22, 23, 24, 1]])


def logits_of(model, inputs=SOURCE, targets=TARGET):
    """Returns the logits of a sentence pair, (1, target, V)."""
    return model({"inputs": inputs, "targets": targets}).numpy()


def close(actual, expected, tolerance=1e-4):
    """Raises AssertionError if two arrays differ."""
    np.testing.assert_allclose(actual, expected, atol=tolerance, rtol=tolerance)


# Any vectors (batch, length, d_model).
X = tf.random.stateless_normal((1, 5, D_MODEL), seed=(1, 2))


def future_is_hidden(model):
    """Tokens 4 and 5 must not change the predictions of tokens 1 to 3."""
    other = tf.constant([[21, 22, 23, 42, 43]])
    close(logits_of(model, targets=other)[:, :3], logits_of(model)[:, :3])


def padding_is_hidden(model):
    """Padding of the source must not change any prediction."""
    padded = tf.pad(SOURCE, [[0, 0], [0, 2]])
    close(logits_of(model, padded), logits_of(model))


def targets_are_shifted(model):
    """The decoder reads 0 and the tokens before the last one."""
    expected = model.step_input(tf.constant([[0, 21, 22, 23, 24]]), None)
    close(model.decoder_input(TARGET), expected)


def weights_sum_to_one(model):
    """The weights of each query have the sum 1."""
    first = model.encoder.layer_0.self_attention
    _, weights = first(X, X, return_attention_scores=True)
    close(tf.reduce_sum(weights, axis=-1), np.ones((1, HEADS, 5)))


def queries_are_scaled(model):
    """The first head's queries are x W / sqrt(d_k)."""
    first = model.encoder.layer_0.self_attention
    expected = X[0] @ first.query.kernel[:, :D_K] / np.sqrt(D_K)
    close(first.project_query(X)[0, 0], expected)


def positions_are_added(model):
    """Channel i of position p is sin(p w), and channel i + d/2 cos(p w)."""
    half = D_MODEL // 2
    w = 10_000.0 ** (-np.arange(half) / (half - 1))
    angle = np.arange(4)[:, None] * w
    added = model.encoder_input(SOURCE) - model.embedding(SOURCE)
    close(added[0], np.concatenate([np.sin(angle), np.cos(angle)], axis=1))


def embeddings_are_scaled(model):
    """The embedding of token 7 is row 7 times sqrt(d_model)."""
    expected = model.embedding.table[7] * np.sqrt(D_MODEL)
    close(model.embedding(SOURCE)[0, 0], expected)


def padding_has_no_loss(model):
    """The loss of a sentence does not change if the batch has longer ones."""
    logits, padding = logits_of(model), [[0, 0], [0, 3]]
    padded = loss(tf.pad(TARGET, padding), tf.pad(logits, [*padding, [0, 0]]))
    close(padded, loss(TARGET, logits))


def goal_sums_to_one(model):
    """The loss of uniform logits is log V - H for a goal with the entropy H."""
    size = tokenizer.vocab_size
    entropy = -0.9 * np.log(0.9) - 0.1 * np.log(0.1 / (size - 1))
    close(loss(TARGET, tf.zeros((1, 5, size))), np.log(size) - entropy)


def sums_are_normalized(model):
    """Without scale and bias, an output has the mean 0 and the variance 1."""
    residual = model.encoder.layer_0.feed_forward_residual
    norm = residual.layer_norm
    y = (residual(5 * X, sublayer=tf.sin) - norm.bias) / norm.scale
    close(tf.reduce_mean(y, axis=-1), np.zeros((1, 5)))
    close(tf.math.reduce_variance(y, axis=-1), np.ones((1, 5)))


def heads_have_own_channels(model):
    """The last head's keys are x W with the last d_k columns of W."""
    first = model.encoder.layer_0.self_attention
    close(first.project_memory(X)[0][0, -1], X[0] @ first.key.kernel[:, -D_K:])


def rate_starts_low(model):
    """The rate begins at scale d^-0.5 w^-1.5; its peak is scale (d w)^-0.5."""
    close(rate(0), 0.5 * D_MODEL**-0.5 * WARMUP**-1.5, 1e-9)
    close(rate(WARMUP - 1), 0.5 * (D_MODEL * WARMUP) ** -0.5, 1e-9)


CHECKS = [
    *(future_is_hidden, padding_is_hidden, targets_are_shifted, weights_sum_to_one),
    *(queries_are_scaled, positions_are_added, embeddings_are_scaled),
    *(padding_has_no_loss, goal_sums_to_one, sums_are_normalized),
    *(heads_have_own_channels, rate_starts_low),
]


def passes(check: Any, fault: int, weights: int) -> bool:
    """Runs a check on the code with a fault (0: none) and a patient's weights."""
    with with_fault(fault):
        try:
            check(patients[weights].model)
        except AssertionError:
            return False
    return True


# %%
for number, check in enumerate(CHECKS, 1):
    found = [fault for fault in range(1, 13) if not passes(check, fault, 0)]
    assert number in found and not passes(check, number, number)
    assert passes(check, 0, 0) and passes(check, 0, number)
    print(f"{check.__name__} fails with the faults {found}")
