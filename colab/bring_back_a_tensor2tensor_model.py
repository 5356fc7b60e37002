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
# # Bring back a tensor2tensor model
#
# tensor2tensor needs Python 3.7 and TensorFlow 1.15, which are hard to install today. Its checkpoints can be used without them. This notebook imports a checkpoint as a model that you can use for translation, export and train further.

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

# %% [markdown]
# ## 1. What you need
#
# You need these files from tensor2tensor's output and data directories:
#
# | file | contents |
# |---|---|
# | `model.ckpt-250000.index`, `model.ckpt-250000.data-...` | the weights; averaged checkpoints have the same format |
# | `hparams.json` | the hyper-parameters |
# | `vocab.translate_ende_wmt32k.32768.subwords` | the vocabulary, from the data directory |
#
# Enter their paths below. If `hparams.json` is missing, pass the name of the hyper-parameter set to the import command instead (`--t2t_hparams_set transformer_base`), and any overrides with `--t2t_hparams key=value`.

# %%
CHECKPOINT = os.environ.get("T2T_CHECKPOINT", "")  # t2t_train/model.ckpt-250000
HPARAMS_JSON = os.environ.get("T2T_HPARAMS_JSON", "")  # t2t_train/hparams.json
VOCAB_FILE = os.environ.get("T2T_VOCAB_FILE", "")  # vocab.*.subwords

# %% [markdown]
# ## 2. An example model
#
# If you left the paths empty, the next cell writes a very small Transformer with random weights and a vocabulary in tensor2tensor's format. The rest of the notebook works as with a trained model, but the translations are meaningless.

# %%
from t2t_repro.command_line.cli import start_tensorflow

start_tensorflow()  # Suppresses TensorFlow's log messages at startup.

import json
from pathlib import Path

import numpy as np
import tensorflow as tf

# Overrides of transformer_base_v1 for a small model.
SMALL = {"hidden_size": 32, "filter_size": 64, "num_heads": 4, "num_hidden_layers": 1}


def write_small_model(folder: Path) -> None:
    """Writes checkpoint, hparams.json and vocabulary in tensor2tensor's format."""
    from t2t_repro.hparams import HParams
    from t2t_repro.interop.tensor2tensor.sets import BASE
    from t2t_repro.interop.tensor2tensor.variable_names import t2t_name, t2t_table_scope
    from t2t_repro.models.variables import named_variables
    from t2t_repro.problems import create
    from t2t_repro.runs.model_dir import build_model
    from t2t_repro.runs.tensor_file import write_tensors
    from t2t_repro.tokenizers.load import load_tokenizer
    from t2t_repro.tokenizers.vocabulary import build_vocabulary

    folder.mkdir()
    (folder / "hparams.json").write_text(json.dumps({**BASE, **SMALL}))
    corpus = create("translate_ende_numbers").pairs("val")
    lines = [line for pair in corpus for line in pair]
    vocabulary = folder / "vocab.small.subwords"
    build_vocabulary("wordpiece", lines, 400, vocabulary)
    sizes = HParams(d_model=32, d_ff=64, num_heads=4, num_layers=1)
    model = build_model(sizes, load_tokenizer(vocabulary).vocab_size)
    values = {name: v.numpy() for name, v in named_variables(model).items()}
    # tensor2tensor stores the embedding in 16 shards and adds a step counter.
    table = values.pop("embedding/table")
    scope = t2t_table_scope("embedding/table", *table.shape)
    variables = {
        f"{scope}/weights_{shard}": rows
        for shard, rows in enumerate(np.array_split(table, 16))
    }
    variables |= {t2t_name(name, "post"): value for name, value in values.items()}
    variables["global_step"] = np.int64(1000)
    write_tensors(folder / "model.ckpt-1000", variables)


if not CHECKPOINT:
    write_small_model(Path("t2t_train"))
    CHECKPOINT = "t2t_train/model.ckpt-1000"
    HPARAMS_JSON = "t2t_train/hparams.json"
    VOCAB_FILE = "t2t_train/vocab.small.subwords"
    print("wrote an example model to t2t_train/")

# %% [markdown]
# ## 3. Variables of the checkpoint
#
# tensor2tensor names each variable after its place in the model. The embedding is stored in 16 shards, `weights_0` to `weights_15`, and its name contains the size of the vocabulary. Layer normalization has `layer_norm_scale` and `layer_norm_bias`. The two dense layers of the feed-forward network are called `conv1` and `conv2`.

# %%
shapes = tf.train.load_checkpoint(CHECKPOINT).get_variable_to_shape_map()
names = sorted(name for name in shapes if not name.startswith("training/"))
print(f"{len(names)} variables, {len(shapes) - len(names)} of the optimizer")
for part, most in (("symbol_modality", 3), ("decoder/layer_0", 12)):
    for name in [name for name in names if part in name][:most]:
        print(f"  {name}  {shapes[name]}")

# %% [markdown]
# ## 4. Import

# %%
# !python -m t2t_repro.import_t2t --checkpoint "{CHECKPOINT}" --hparams_json "{HPARAMS_JSON}" --vocab_file "{VOCAB_FILE}" --model_dir imported

# %% [markdown]
# The report lists unused variables. The import fails if a weight of the model is missing, or if the checkpoint uses an unsupported feature such as mixtures of experts or area attention. `imported/hparams.yaml` contains the hyper-parameters under the paper's names, each with a description:

# %%
from t2t_repro.models.variables import named_variables
from t2t_repro.runs.model_dir import ModelDir

directory = ModelDir(Path("imported"))
chosen = directory.hparams()
for name in ("d_model", "d_ff", "num_heads", "num_layers", "norm", "position"):
    print(f"{name}: {getattr(chosen, name)}")

# %% [markdown]
# Compare a weight of the imported model with the checkpoint:

# %%
model = directory.model(directory.checkpoint())
ours = named_variables(model)["encoder/layer_0/feed_forward/hidden/kernel"].numpy()
theirs = tf.train.load_checkpoint(CHECKPOINT).get_tensor(
    "transformer/body/encoder/layer_0/ffn/conv1/kernel"
)
print("largest difference:", np.abs(ours - theirs).max())
np.testing.assert_array_equal(ours, theirs)

# %% [markdown]
# ## 5. Translate
#
# Translate as with any other model. By default, the translation of a sentence does not depend on the other sentences of its batch. `--tensor2tensor_rules` reproduces tensor2tensor's decoder, which derives the length limit from the longest sentence of the batch.

# %%
Path("input.txt").write_text("half past four\nseventeen euros\n", encoding="utf-8")

# %%
# !python -m t2t_repro.translate --model_dir imported --input_file input.txt --output_file output.txt --extra_length 5

# %%
output = Path("output.txt").read_text(encoding="utf-8")
print(output)
assert output.count("\n") == 2

# %% [markdown]
# ## 6. Next steps
#
# **Serve it**: run `python -m t2t_repro.export --model_dir imported --export_dir exported` and continue with the notebook *Serve it*.
#
# **Train it further** with the hyper-parameters in `imported/hparams.yaml`. If the checkpoint contains Adam's moments, they, the step and the learning rate continue. Otherwise, training begins with a new warm-up:
#
#     python -m t2t_repro.train --hparams imported/hparams.yaml --problem files --data_dir mytext --source_lang en --target_lang de --model_dir imported
