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
# This notebook trains a translation model on your parallel text, scores it with BLEU and exports it for a server. If you have no text at hand, the notebook writes an example corpus.

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
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

# %% [markdown]
# ## 1. Your text
#
# Put six UTF-8 files into one folder, with one sentence per line. Line *n* of one language is the translation of line *n* of the other. Files may be compressed (`train.en.gz`).
#
# | files | purpose | lines |
# |---|---|---|
# | `train.en`, `train.de` | training | all that you have |
# | `val.en`, `val.de` | validation during training | 500 to 3,000 |
# | `test.en`, `test.de` | final score | 1,000 to 3,000 |
#
# Set the folder and the languages below. In Colab, set `UPLOAD = True` to upload the files, or mount your Drive and use a folder there.

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
# If the folder does not exist, this cell writes an example: numbers, dates and prices from the built-in corpus as text files.

# %%
if not folder.is_dir():
    from t2t_repro import problems

    corpus = problems.create("translate_ende_numbers")
    folder.mkdir()
    for split, most in (("train", 20_000), ("val", 500), ("test", 1_000)):
        pairs = list(corpus.pairs(split))[: most // 25 if QUICK else most]
        for side, language in enumerate((SOURCE, TARGET)):
            text = "".join(f"{pair[side]}\n" for pair in pairs)
            (folder / f"{split}.{language}").write_text(text, encoding="utf-8")
    print(f"wrote an example to {folder}/")

# %% [markdown]
# Look at the data before you train. The most frequent problems are visible here: lines that are not translations of each other, and swapped languages.

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
# Choose the model by the size of your corpus:
#
# | sentence pairs | hyper-parameter set |
# |---|---|
# | fewer than 50,000 | `small` with more dropout, as below |
# | up to a million | `small` |
# | more | `base`, the paper's model, on a GPU |
#
# The subword vocabulary is learned from your text. If the text is too short for the requested `vocab_size`, the largest possible vocabulary is used.
#
# 3,000 steps take about two hours on two cores and minutes on a GPU. You can stop the cell at any time: the state is saved, and running the cell again resumes training.

# %%
SET = "small,dropout=0.3,vocab_size=2000,train_steps=3000,warmup_steps=1000"
if QUICK:
    SET = "small,d_model=64,d_ff=128,num_layers=1,vocab_size=500,tokens_per_batch=512"
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
# The training loss includes label smoothing and dropout, the validation loss does not, so the two cannot be compared. A validation loss that rises again is a sign of overfitting: use more dropout, a smaller model or more text.

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
# Skipped pairs (with an empty side or a sentence that is too long) are listed in a file:

# %%
# !head -5 mymodel/skipped_pairs.tsv

# %% [markdown]
# ## 4. Score
#
# `evaluate` translates the test set with the averaged weights and compares the result with your reference translations. Report the score together with its signature.

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
# `translate` writes one output line per input line. If it is interrupted, run the same command again to resume.

# %%
Path("input.txt").write_text("half past four\nseventeen euros\n", encoding="utf-8")

# %%
# !python -m t2t_repro.translate --model_dir mymodel --input_file input.txt --output_file output.txt

# %%
output = Path("output.txt").read_text(encoding="utf-8")
print(output)
assert output.count("\n") == 2

# %% [markdown]
# `score` computes the log probability of a given translation. With `--per_token` it lists the log probability of each token.

# %%
Path("target.txt").write_text("halb fünf\nsiebzehn Euro\n", encoding="utf-8")

# %%
# !python -m t2t_repro.score --model_dir mymodel --source_file input.txt --target_file target.txt --per_token

# %% [markdown]
# ## 6. Export and download
#
# The exported SavedModel includes the tokenizer and the beam search, and translates plain text. The notebook *Serve it* explains how to serve it. `mymodel.zip` is the model directory, with which you can resume training on another machine.

# %%
# !python -m t2t_repro.export --model_dir mymodel --export_dir exported

# %%
import shutil

for name in ("exported", "mymodel"):
    archive = shutil.make_archive(name, "zip", ".", name)
    print(f"{Path(archive).name}: {Path(archive).stat().st_size / 1e6:.1f} MB")
assert (Path("exported") / "1" / "saved_model.pb").exists()

# %% [markdown]
# In Colab, set `DOWNLOAD = True` to download both archives:

# %%
DOWNLOAD = False
if DOWNLOAD:
    from google.colab import files

    files.download("exported.zip")
    files.download("mymodel.zip")
