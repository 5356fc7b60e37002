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
# # Train on your own text
#
# You have sentences in one language and their translations in another. At the end you have a model that translates, a score with its signature, and a file to serve.
#
# Without text of your own the notebook makes some, so that you can run it once from top to bottom and see.

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

# The tests of this notebook train for seconds. You want a real training.
QUICK = os.environ.get("T2T_REPRO_QUICK") == "1"

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

# %% [markdown]
# ## 1. Your text
#
# One folder with six files, a sentence a line, UTF-8. Line *n* of one language is the translation of line *n* of the other; each file may be compressed (`train.en.gz`).
#
# | files | what for | lines |
# |---|---|---|
# | `train.en`, `train.de` | learning | as many as you have |
# | `val.en`, `val.de` | looking how it goes | 500 to 3,000 |
# | `test.en`, `test.de` | the score, once | 1,000 to 3,000 |
#
# Name the folder and the languages. In Colab, `UPLOAD = True` asks for the files; or mount your Drive and name the folder there.

# %%
FOLDER = "mytext"
SOURCE, TARGET = "en", "de"
UPLOAD = False

folder = Path(FOLDER)
if UPLOAD:
    from google.colab import files

    folder.mkdir(exist_ok=True)
    for name, content in files.upload().items():
        (folder / name).write_bytes(content)

# %% [markdown]
# No folder there? Then this cell writes an example: the built-in corpus of numbers, dates and prices as text files.

# %%
if not folder.is_dir():
    from t2t_repro import problems

    corpus = problems.create("translate_ende_numbers")
    folder.mkdir()
    for split, most in (("train", 20_000), ("val", 500), ("test", 1_000)):
        pairs = list(corpus.pairs(split))[: 40 if QUICK and split != "train" else most]
        for side, language in enumerate((SOURCE, TARGET)):
            text = "".join(f"{pair[side]}\n" for pair in pairs)
            (folder / f"{split}.{language}").write_text(text, encoding="utf-8")
    print(f"wrote an example into {folder}/")

# %% [markdown]
# Look at it before you train on it. Most disappointments of machine translation are visible here: sides that do not belong together, or that are swapped.

# %%
from t2t_repro.problems import create

mytext = create("files", FOLDER, SOURCE, TARGET)
for split in ("train", "val", "test"):
    print(f"{split}: {mytext.description(split)}")
print()
for (source, target), _ in zip(mytext.pairs("train"), range(3), strict=False):
    print(f"{source}\n    {target}")

# %% [markdown]
# ## 2. Train
#
# How large a model? With fewer than 50,000 pairs, small and with much dropout; `small` as it is up to a million; `base`, the paper's, beyond that and with a GPU. The subwords are learned from your text as well; if it cannot fill the vocabulary that is asked for, the largest possible one is taken.
#
# 3,000 updates take some two hours on two cores, and minutes on a GPU. Stop the cell whenever you like: everything is saved, and the same cell goes on.

# %%
SET = "small,dropout=0.3,vocab_size=2000,train_steps=3000,warmup_steps=1000"
if QUICK:
    SET = "small,d_model=64,d_ff=128,num_layers=1,vocab_size=500,tokens_per_batch=1024"
    SET += ",train_steps=60,warmup_steps=80,checkpoint_steps=30,eval_steps=30"
    SET += ",average_last=2"
DATA = (
    f"--problem files --data_dir {FOLDER} --source_lang {SOURCE} --target_lang {TARGET}"
)

# %%
# !python -m t2t_repro.train --hparams {SET} {DATA} --model_dir mymodel

# %% [markdown]
# ## 3. The curves
#
# Training loss has label smoothing and dropout in it, validation loss has neither, so look at each by itself. Validation loss that rises again says that the model learns by heart: more dropout, a smaller model, or more text.

# %%
training = np.genfromtxt("mymodel/training_log.tsv", names=True, delimiter="\t")
validation = np.genfromtxt("mymodel/validation_log.tsv", names=True, delimiter="\t")
figure, axes = plt.subplots(1, 3, figsize=(12, 3.2))
axes[0].plot(training["step"], training["loss"], marker=".")
axes[0].set(title="training loss", xlabel="update")
validation = np.atleast_1d(validation)
axes[1].plot(validation["step"], validation["loss"], marker=".", color="tab:orange")
axes[1].set(title="validation loss", xlabel="update")
axes[2].plot(
    validation["step"], validation["greedy_bleu"], marker=".", color="tab:green"
)
axes[2].set(title="validation BLEU (none during the warm-up)", xlabel="update")
for ax in axes:
    ax.set_ylim(0, None)
figure.tight_layout()
plt.show()

# %% [markdown]
# What was not used, and why (empty sides, sentences that are too long):

# %%
# !head -5 mymodel/skipped_pairs.tsv

# %% [markdown]
# ## 4. Score
#
# The last checkpoints were averaged; the test split is translated with them and compared with your translations. Quote the figure together with its signature.

# %%
# !python -m t2t_repro.evaluate --model_dir mymodel --split test --output_file mytranslations.txt

# %%
for (source, target), found, _ in zip(
    mytext.pairs("test"),
    Path("mytranslations.txt").read_text(encoding="utf-8").split("\n"),
    range(3),
    strict=False,
):
    print(f"source       {source}\nreference    {target}\nthe model    {found}\n")

# %% [markdown]
# ## 5. Translate
#
# A file goes in and a file comes out, a line for each line. If it is interrupted, the same command goes on.

# %%
Path("input.txt").write_text("half past four\nseventeen euros\n", encoding="utf-8")

# %%
# !python -m t2t_repro.translate --model_dir mymodel --input_file input.txt --output_file output.txt

# %%
output = Path("output.txt").read_text(encoding="utf-8")
print(output)
assert output.count("\n") == 2

# %% [markdown]
# And the reverse question, how probable the model finds a translation that you give it. With `--per_token` you see which subword surprises it.

# %%
Path("target.txt").write_text("halb fünf\nsiebzehn Euro\n", encoding="utf-8")

# %%
# !python -m t2t_repro.score --model_dir mymodel --source_file input.txt --target_file target.txt --per_token

# %% [markdown]
# ## 6. Take it with you
#
# The export is a SavedModel: text in, text out, tokenizer and search inside. The notebook *Serve it* goes on from here. `mymodel.zip` is the model's directory, with which a training goes on elsewhere.

# %%
# !python -m t2t_repro.export --model_dir mymodel --export_dir exported

# %%
import shutil

for name in ("exported", "mymodel"):
    archive = shutil.make_archive(name, "zip", ".", name)
    print(f"{Path(archive).name}: {Path(archive).stat().st_size / 1e6:.1f} MB")
assert (Path("exported") / "1" / "saved_model.pb").exists()

# %% [markdown]
# In Colab, this downloads them:

# %%
DOWNLOAD = False
if DOWNLOAD:
    from google.colab import files

    files.download("exported.zip")
    files.download("mymodel.zip")
