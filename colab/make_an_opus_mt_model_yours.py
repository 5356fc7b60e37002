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
# Helsinki-NLP's OPUS-MT has over a thousand translators, trained with Marian. Here one of them becomes a TensorFlow model that translates, learns a few thousand lines of *your* text, shows the difference, and is exported for a server.

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
    subprocess.run([*pip, package], check=True)

# The tests of this notebook train for seconds.
QUICK = os.environ.get("T2T_REPRO_QUICK") == "1"

# %% [markdown]
# ## 1. The model
#
# An unpacked OPUS-MT download, the folder of a training with Marian, or a `MarianMTModel` of Hugging Face. Name yours, with its languages; otherwise OPUS-MT's English-German model is fetched, 275 MB. What is there is listed at [OPUS-MT-train](https://github.com/Helsinki-NLP/OPUS-MT-train/tree/master/models).

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
# The command says what the model is, how it searches, and what of the folder was not used.

# %%
# !python -m t2t_repro.import_marian --folder "{FOLDER}" --model_dir original --source_lang {SOURCE} --target_lang {TARGET}

# %% [markdown]
# ## 3. Your text
#
# A folder with `train`, `val` and `test`, a sentence a line, line *n* of one language the translation of line *n* of the other. Name yours; otherwise an example is written: numbers, dates and prices in words.

# %%
TEXT = "mytext"

folder = Path(TEXT)
if not folder.is_dir():
    from t2t_repro import problems

    corpus = problems.create("translate_ende_numbers")
    folder.mkdir()
    for split, most in (("train", 5_000), ("val", 200), ("test", 200)):
        pairs = list(corpus.pairs(split))[: 20 if QUICK and split != "train" else most]
        for side, language in enumerate((SOURCE, TARGET)):
            text = "".join(f"{pair[side]}\n" for pair in pairs)
            (folder / f"{split}.{language}").write_text(text, encoding="utf-8")
    print(f"wrote an example into {folder}/")

# %% [markdown]
# How well does the model know such text? `score` gives the perplexity of your own translations: 1 would be perfect foresight, the size of the vocabulary no idea.

# %%
# !python -m t2t_repro.score --model_dir original --source_file {TEXT}/test.{SOURCE} --target_file {TEXT}/test.{TARGET} > original.tsv

# %%
# !python -m t2t_repro.translate --model_dir original --input_file {TEXT}/test.{SOURCE} --output_file original.txt

# %% [markdown]
# ## 4. Train it on
#
# In a copy, so that both can be compared. The set has Marian's label smoothing and schedule; The line of progress says how long 300 updates take. Stop the cell whenever you like: the same cell goes on.

# %%
import shutil

if not Path("mine").exists():
    shutil.copytree("original", "mine")
UPDATES = 20 if QUICK else 300
SET = "mine/hparams.yaml"
if QUICK:
    SET += ",warmup_steps=5,tokens_per_batch=512"

# %%
# !python -m t2t_repro.train --hparams {SET} --problem files --data_dir {TEXT} --source_lang {SOURCE} --target_lang {TARGET} --model_dir mine --train_steps {UPDATES}

# %%
# !python -m t2t_repro.score --model_dir mine --source_file {TEXT}/test.{SOURCE} --target_file {TEXT}/test.{TARGET} > mine.tsv
# !python -m t2t_repro.translate --model_dir mine --input_file {TEXT}/test.{SOURCE} --output_file mine.txt

# %% [markdown]
# ## 5. The difference

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
# The SavedModel takes and gives plain text; TensorFlow alone runs it. The notebook *Serve it* goes on from here.

# %%
# !python -m t2t_repro.export --model_dir mine --export_dir exported

# %%
import tensorflow as tf
import tensorflow_text  # noqa: F401  # The operations that the model has.

served = tf.saved_model.load(sorted(glob.glob("exported/[0-9]*"))[-1])
translate = served.signatures["serving_default"]
answer = translate(text=tf.constant(columns[0][:2]))["translations"].numpy()
print([line.decode() for line in answer])
assert [line.decode() for line in answer] == columns[3][:2]
