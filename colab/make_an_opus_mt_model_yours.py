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
# # Make an OPUS-MT model yours
#
# OPUS-MT by Helsinki-NLP provides over a thousand translation models, trained with Marian. This notebook imports one of them, fine-tunes it on a few thousand lines of *your* text, compares the translations before and after, and exports the model for a server.

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
# ## 1. The model
#
# The folder can be an unpacked OPUS-MT download, the output of a training run with Marian, or a `MarianMTModel` of Hugging Face. Enter its path and languages. By default, the notebook downloads OPUS-MT's English-German model (275 MB). [OPUS-MT-train](https://github.com/Helsinki-NLP/OPUS-MT-train/tree/master/models) lists the available models.

# %%
FOLDER = os.environ.get("MARIAN_FOLDER", "")
SOURCE, TARGET = "en", "de"

# %%
import urllib.request
import zipfile
from pathlib import Path

if not FOLDER:
    FOLDER = "opus-mt-en-de"
    address = "https://object.pouta.csc.fi/OPUS-MT-models/en-de/opus-2020-02-26.zip"
    fetched, _ = urllib.request.urlretrieve(address)
    with zipfile.ZipFile(fetched) as archive:
        archive.extractall(FOLDER)

# %% [markdown]
# ## 2. Import
#
# The command prints the architecture, the search settings, and the unused files and settings of the folder.

# %%
# !python -m t2t_repro.import_marian --folder "{FOLDER}" --model_dir original --source_lang {SOURCE} --target_lang {TARGET}

# %% [markdown]
# ## 3. Your text
#
# Set `TEXT` to a folder with the files `train`, `val` and `test` in both languages. Each line contains one sentence, and line *n* of one language is the translation of line *n* of the other. If the folder does not exist, the cell writes an example of numbers, dates and prices in words.

# %%
TEXT = "mytext"

folder = Path(TEXT)
if not folder.is_dir():
    from t2t_repro import problems

    corpus = problems.create("translate_ende_numbers")
    folder.mkdir()
    for split, most in (("train", 5_000), ("val", 200), ("test", 200)):
        pairs = list(corpus.pairs(split))[: most // 20 if QUICK else most]
        for side, language in enumerate((SOURCE, TARGET)):
            text = "".join(f"{pair[side]}\n" for pair in pairs)
            (folder / f"{split}.{language}").write_text(text, encoding="utf-8")
    print(f"wrote an example to {folder}/")

# %% [markdown]
# `score` computes the perplexity of your reference translations under the model. It is 1 for a perfect prediction, and equal to the size of the vocabulary for a uniform guess.

# %%
# !python -m t2t_repro.score --model_dir original --source_file {TEXT}/test.{SOURCE} --target_file {TEXT}/test.{TARGET} > original.tsv

# %%
# !python -m t2t_repro.translate --model_dir original --input_file {TEXT}/test.{SOURCE} --output_file original.txt

# %% [markdown]
# ## 4. Fine-tune
#
# Train a copy, so that you can compare both models. The imported hyper-parameters include Marian's label smoothing and learning-rate schedule. The progress line shows the remaining time for 300 steps. You can stop the cell at any time and run it again to resume.

# %%
import shutil

if not Path("mine").exists():
    shutil.copytree("original", "mine")
STEPS = 20 if QUICK else 300
SET = "mine/hparams.yaml"
if QUICK:
    SET += ",warmup_steps=30,tokens_per_batch=512"

# %%
# !python -m t2t_repro.train --hparams {SET} --problem files --data_dir {TEXT} --source_lang {SOURCE} --target_lang {TARGET} --model_dir mine --train_steps {STEPS}

# %%
# !python -m t2t_repro.score --model_dir mine --source_file {TEXT}/test.{SOURCE} --target_file {TEXT}/test.{TARGET} > mine.tsv
# !python -m t2t_repro.translate --model_dir mine --input_file {TEXT}/test.{SOURCE} --output_file mine.txt

# %% [markdown]
# ## 5. Compare the translations

# %%
names = (f"{TEXT}/test.{SOURCE}", f"{TEXT}/test.{TARGET}", "original.txt", "mine.txt")
columns = [Path(name).read_text(encoding="utf-8").split("\n") for name in names]
for source, reference, before, after in list(zip(*columns, strict=True))[:5]:
    print(
        f"{source}\n  should be  {reference}\n  before     {before}\n  after      {after}"
    )

# %% [markdown]
# ## 6. Serve it
#
# The SavedModel translates plain text and needs only TensorFlow and `tensorflow_text`. Continue with the notebook *Serve it*.

# %%
# !python -m t2t_repro.export --model_dir mine --export_dir exported

# %%
import tensorflow as tf
import tensorflow_text  # noqa: F401  Registers the tokenizer's operations.

served = tf.saved_model.load(sorted(glob.glob("exported/[0-9]*"))[-1])
translate = served.signatures["serving_default"]
answer = translate(text=tf.constant(columns[0][:2]))["translations"].numpy()
print([line.decode() for line in answer])
assert [line.decode() for line in answer] == columns[3][:2]
