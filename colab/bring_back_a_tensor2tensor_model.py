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
# tensor2tensor needs Python 3.7 and TensorFlow 1.15, which are hard to have today. The models that it trained need neither: their weights are numbers with names. This notebook turns such a checkpoint into a model that translates, can be exported, and can be trained on.

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

# %% [markdown]
# ## 1. What you need
#
# From the directory of the old training:
#
# | file | what it is |
# |---|---|
# | `model.ckpt-250000.index`, `model.ckpt-250000.data-...` | the weights; averaged ones are called the same |
# | `hparams.json` | what kind of model it is |
# | `vocab.translate_ende_wmt32k.32768.subwords` | the subwords, from tensor2tensor's data directory |
#
# Name them here. Is there no `hparams.json`? The command takes the name of the set in its place: `--t2t_hparams_set transformer_base`, and with `--t2t_hparams key=value` what differed.

# %%
CHECKPOINT = os.environ.get("T2T_CHECKPOINT", "")  # t2t_train/model.ckpt-250000
HPARAMS_JSON = os.environ.get("T2T_HPARAMS_JSON", "")  # t2t_train/hparams.json
VOCAB_FILE = os.environ.get("T2T_VOCAB_FILE", "")  # vocab.*.subwords

# %% [markdown]
# ## 2. No old model at hand?
#
# Then the next cell writes one: a very small Transformer with random weights, under the names and in the pieces in which tensor2tensor stored it, with a vocabulary in its format. Everything after it is the same for a real one; only the translations are not worth reading.

# %%
from t2t_repro.command_line.cli import start_tensorflow

start_tensorflow()  # Without the lines that TensorFlow logs while it starts.

import json
from pathlib import Path

import numpy as np
import tensorflow as tf

# Of transformer_base_v1, what is smaller here.
SMALL = {"hidden_size": 32, "filter_size": 64, "num_heads": 4, "num_hidden_layers": 2}


def write_small_model(folder: Path) -> None:
    """Writes checkpoint, hparams.json and vocabulary as tensor2tensor leaves them."""
    from t2t_repro.hparams import HParams
    from t2t_repro.interop.tensor2tensor.sets import BASE
    from t2t_repro.interop.tensor2tensor.variable_names import t2t_name, t2t_table_scope
    from t2t_repro.models.variables import named_variables
    from t2t_repro.problems import create
    from t2t_repro.runs.checkpoints import write_tensors
    from t2t_repro.runs.model_dir import build_model
    from t2t_repro.tokenizers.load import load_tokenizer
    from t2t_repro.tokenizers.vocabulary import build_vocabulary

    folder.mkdir()
    (folder / "hparams.json").write_text(json.dumps({**BASE, **SMALL}))
    corpus = create("translate_ende_numbers").pairs("train")
    lines = [
        line for pair, _ in zip(corpus, range(2000), strict=False) for line in pair
    ]
    vocabulary = folder / "vocab.small.subwords"
    build_vocabulary("wordpiece", lines, 400, vocabulary)
    sizes = HParams(d_model=32, d_ff=64, num_heads=4, num_layers=2)
    model = build_model(sizes, load_tokenizer(vocabulary).vocab_size)
    values = {name: v.numpy() for name, v in named_variables(model).items()}
    # 16 shards of the embedding, names as "encdec_attention", a step.
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
    print("wrote a small one into t2t_train/")

# %% [markdown]
# ## 3. What is in it
#
# tensor2tensor's names say where each weight belongs. The embedding lies in 16 pieces, `weights_0` to `weights_15`; the size of the vocabulary is part of its name; normalisation is `layer_norm_scale` and `layer_norm_bias`; the two layers of the feed-forward network are called `conv1` and `conv2`, although nothing is convolved.

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
# Every variable is used or named as unused, and every weight of the model was found. What this package does not have (mixtures of experts, area attention and the like) would have been refused by name. `imported/hparams.yaml` has the model's settings in the paper's words, each with its meaning:

# %%
from t2t_repro.models.variables import named_variables
from t2t_repro.runs.model_dir import ModelDir

directory = ModelDir(Path("imported"))
chosen = directory.hparams()
for name in ("d_model", "d_ff", "num_heads", "num_layers", "norm", "position"):
    print(f"{name}: {getattr(chosen, name)}")

# %% [markdown]
# Is it the same model? Compare a weight with the checkpoint itself:

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
# As any model. `--tensor2tensor_rules` searches as tensor2tensor's decoder did, where a sentence's length limit is that of the longest in its batch; without it a translation depends on its sentence alone.

# %%
Path("input.txt").write_text("half past four\nseventeen euros\n", encoding="utf-8")

# %%
# !python -m t2t_repro.translate --model_dir imported --input_file input.txt --output_file output.txt --extra_length 5

# %%
output = Path("output.txt").read_text(encoding="utf-8")
print(output)
assert output.count("\n") == 2

# %% [markdown]
# ## 6. And then?
#
# **Serve it**: `python -m t2t_repro.export --model_dir imported --export_dir exported`, then the notebook *Serve it*.
#
# **Train it on.** Its settings are `imported/hparams.yaml`. Where the checkpoint has Adam's moments, they are used, and the learning rate goes on from its step:
#
#     python -m t2t_repro.train --hparams imported/hparams.yaml --problem files --data_dir mytext --source_lang en --target_lang de --model_dir imported
#
# **Throw Python 3.7 away.**
