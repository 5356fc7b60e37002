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
# # Make a general model yours
#
# A model that was trained on general text translates the text of one field badly. Training it on that text helps, but can make all other translations worse. This notebook adapts a model in two ways, with text of the field only and mixed with general text, measures both kinds of text before and after, and keeps the first model if the new one is not better.

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
    subprocess.run([*pip, package], check=True)

# The tests of this notebook set QUICK to train for seconds only.
QUICK = os.environ.get("T2T_REPRO_QUICK") == "1"

# %% [markdown]
# ## 1. A general model
#
# `GENERAL` is a trained model: a model directory, or a folder of Marian, Transformers, OpenNMT-tf or tensor2tensor. `GENERAL_TEXT` is a folder with general text: at least the validation files `val.en` and `val.de`, and for the mixture also `train.en` and `train.de`. If they do not exist, the next cell writes the built-in corpus of numbers, dates and prices, and trains a small model on it, which takes some minutes.

# %%
GENERAL, GENERAL_TEXT, MY_TEXT = "general", "general_text", "mytext"
SOURCE, TARGET = "en", "de"

# %%
from pathlib import Path


def write_text(folder, split, pairs):
    """Writes the pairs of a split as two files, with one sentence per line."""
    Path(folder).mkdir(exist_ok=True)
    for side, language in enumerate((SOURCE, TARGET)):
        text = "".join(f"{pair[side]}\n" for pair in pairs)
        Path(folder, f"{split}.{language}").write_text(text, encoding="utf-8")


if not Path(GENERAL_TEXT).exists():
    from t2t_repro import problems

    corpus = problems.create("translate_ende_numbers")
    for split, most in (("train", 20_000), ("val", 200), ("test", 200)):
        pairs = list(corpus.pairs(split))[: most // 20 if QUICK else most]
        write_text(GENERAL_TEXT, split, pairs)

DATA = f"--problem files --source_lang {SOURCE} --target_lang {TARGET}"
if not Path(GENERAL).exists():
    flags = f"--hparams tiny {DATA} --data_dir {GENERAL_TEXT} --model_dir {GENERAL}"
    command = [sys.executable, "-m", "t2t_repro.train", *flags.split()]
    subprocess.run(command, check=True)

# %% [markdown]
# ## 2. Your text
#
# Put the files `train`, `val` and `test` in both languages into `MY_TEXT`. Some hundred validation pairs are needed to see whether a difference is more than chance. If the folder does not exist, the cell writes an example: announcements of departures.

# %%
import random

CITIES = ("Bonn", "Bremen", "Essen", "Halle", "Jena", "Kassel", "Mainz", "Ulm")
DELAYS = (
    ("is on time", "ist pünktlich"),
    ("is cancelled", "fällt aus"),
    ("is ten minutes late", "hat zehn Minuten Verspätung"),
)


def announcement(generator):
    """Returns a sentence about a train in both languages."""
    city, line = generator.choice(CITIES), generator.randint(1, 99)
    time = f"{generator.randint(0, 23)}:{generator.randint(0, 59):02d}"
    delay, german = generator.choice(DELAYS)
    return (
        f"Train {line} to {city} at {time} {delay}.",
        f"Der Zug {line} nach {city} um {time} Uhr {german}.",
    )


if not Path(MY_TEXT).exists():
    for split, count in (("train", 2_000), ("val", 200), ("test", 200)):
        generator = random.Random(split)
        count = count // 20 if QUICK else count
        write_text(MY_TEXT, split, [announcement(generator) for _ in range(count)])
print(Path(MY_TEXT, f"val.{SOURCE}").read_text(encoding="utf-8")[:200])

# %% [markdown]
# ## 3. Train on your text, plain and mixed
#
# `--init_from` starts from the weights and the vocabulary of the general model, which stays unchanged. `--guard` measures the general text as well, before the first step and at each validation: a checkpoint that loses more than half a point of BLEU is rejected. The mixture takes three of four steps from your text.

# %%
SET = "adapt,train_steps=600"
if QUICK:
    SET = "adapt,train_steps=4,eval_steps=4,checkpoint_steps=4,tokens_per_batch=256"
    SET += ",beam_size=1"

# %%
# !python -m t2t_repro.train --hparams {SET} --problem files --source_lang {SOURCE} --target_lang {TARGET} --init_from {GENERAL} --guard {GENERAL_TEXT} --guard_tolerance 0.5 --data_dir {MY_TEXT} --model_dir plain

# %%
# !python -m t2t_repro.train --hparams {SET} --problem files --source_lang {SOURCE} --target_lang {TARGET} --init_from {GENERAL} --guard {GENERAL_TEXT} --guard_tolerance 0.5 --data_dir {GENERAL_TEXT}:1,{MY_TEXT}:3 --model_dir mixed

# %% [markdown]
# ## 4. Compare
#
# Each row has the BLEU of the validation text before and after. If no checkpoint is significantly better on your text without damage to the general text, the result is the general model.

# %%
import json

for name in ("plain", "mixed"):
    result = json.loads(Path(name, "result.json").read_text(encoding="utf-8"))["guard"]
    for text in ("validation", "guard"):
        before, after = (result[text][key]["score"] for key in ("first", "second"))
        print(f"{name:6} {text:10} {before:6.2f} -> {after:6.2f}")
    print(f"{name:6} is {'the general model' if result['is_origin'] else 'adapted'}")

# %% [markdown]
# The curves of the two kinds of text show the price of each step: the columns of the log are step, validation loss, BLEU of your text and BLEU of the general text.

# %%
print(Path("mixed", "validation_log.tsv").read_text(encoding="utf-8"))

# %% [markdown]
# The model directory also contains the last translations of each set, next to the source and the reference.

# %%
rows = Path("mixed", "validation", "val.tsv").read_text(encoding="utf-8").splitlines()
for row in rows[:3]:
    print("\n    ".join(row.split("\t")))

# %% [markdown]
# ## 5. When a list of terms is the better tool
#
# If only some words must be translated in a certain way, do not train: a list of terms changes exactly these words and needs no text. See `--terms` of the command `translate`. Training is the better tool for style, word order and many new words.
#
# Continue with the notebook *Serve it*, which exports a model for a server.
