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
# # Use it with Keras
#
# A trained model can be exported as a *preset* of KerasHub, the library of pretrained models for Keras that was formerly called KerasNLP. This notebook loads such a preset with the JAX backend, translates with it, fine-tunes it on pairs of strings with LoRA, quantizes it, and saves it.

# %%
import glob
import importlib.util
import os
import subprocess
import sys

# Installs the package if it is missing: from a wheel that you uploaded to this folder,
# otherwise from the package index.
needed = []
if importlib.util.find_spec("t2t_repro") is None:
    needed += (glob.glob("t2t_repro-*.whl") or ["t2t_repro==0.2.0"])[-1:]
if importlib.util.find_spec("jax") is None:
    needed.append("jax")
if needed:
    pip = [sys.executable, "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, *needed], check=True)

# The tests of this notebook set QUICK to train for seconds only.
QUICK = os.environ.get("T2T_REPRO_QUICK") == "1"

# %% [markdown]
# ## 1. A model as a preset
#
# Set `MODEL` to the directory of a trained or imported model. If the directory does not exist, the cell trains a small model on the built-in corpus, which takes ten minutes on two cores. Training and export need TensorFlow.

# %%
MODEL = "mymodel"

SET = "tiny"
if QUICK:
    SET = "tiny,d_model=64,d_ff=128,tokens_per_batch=1024,train_steps=60"
    SET += ",warmup_steps=80,checkpoint_steps=30,average_last=2,eval_steps=0"
    SET += ",decode_extra_length=5"
if os.path.isdir(MODEL):
    print(f"using the model in {MODEL}/")
else:
    train = [sys.executable, "-m", "t2t_repro.train", "--hparams", SET]
    subprocess.run([*train, "--model_dir", MODEL], check=True)

# %%
# !python -m t2t_repro.export --model_dir {MODEL} --format keras_hub --export_dir presets
# !ls presets/1

# %% [markdown]
# ## 2. Load it with JAX
#
# Keras chooses its backend when it is imported. `import t2t_repro.hub` registers the classes of the preset; without it, `from_preset` raises "no class registered".

# %%
os.environ["KERAS_BACKEND"] = "jax"  # Or "torch" or "tensorflow".
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras_hub

from t2t_repro import hub

task = keras_hub.models.Seq2SeqLM.from_preset("presets/1")
print(task.generate(["half past four", "seventeen euros"]))

# %% [markdown]
# The search is that of `python -m t2t_repro.translate`: beam search with the paper's length penalty. `compile` replaces it. A prefix of the translation is passed as `decoder_text`.

# %%
task.compile(sampler=hub.BeamSearchSampler(num_beams=8, alpha=1.0))
print(task.generate({"encoder_text": ["half past four"], "decoder_text": ["vier"]}))

# %% [markdown]
# ## 3. Fine-tune it with LoRA
#
# `enable_lora` freezes the model and adds factors of rank 4 to the projections of queries and values. `fit` takes strings. The pairs here teach the model another way to say the time.

# %%
from t2t_repro.problems.translate_ende_numbers import english, german

pairs = {
    f"it is {english.cardinal(hour)} o'clock": f"es ist Punkt {german.cardinal(hour)}"
    for hour in range(1, 10)
}

task.preprocessor.encoder_sequence_length = 32
task.preprocessor.decoder_sequence_length = 32
task.backbone.enable_lora(4)
task.compile(optimizer="adam")
print(f"{len(task.trainable_variables)} variables are trained")
losses = task.fit(
    {"encoder_text": list(pairs), "decoder_text": list(pairs.values())},
    batch_size=3,
    epochs=10 if QUICK else 60,
    verbose=0,
).history["loss"]
print(f"loss {losses[0]:.3f}, after {len(losses)} epochs {losses[-1]:.3f}")
print(task.generate(["it is seven o'clock"]))

# %% [markdown]
# The factors alone can be saved and added to a new copy of the model.

# %%
task.backbone.save_lora_weights("clock.lora.h5")
copy = keras_hub.models.Seq2SeqLM.from_preset("presets/1")
copy.backbone.enable_lora(4)
copy.backbone.load_lora_weights("clock.lora.h5")
assert copy.generate(["it is seven o'clock"]) == task.generate(["it is seven o'clock"])

# %% [markdown]
# ## 4. Quantize and save it
#
# A preset contains weights, vocabulary and settings. If a model with LoRA is saved as a preset, the factors are added to its weights. Keras warns about the kinds of layers that `quantize` skips.

# %%
small = keras_hub.models.Seq2SeqLM.from_preset("presets/1")
small.quantize("int8")
small.save_to_preset("presets/int8")
reloaded = keras_hub.models.Seq2SeqLM.from_preset("presets/int8")
print(reloaded.generate(["half past four", "seventeen euros"]))
for name in ("presets/1", "presets/int8"):
    print(f"{name}: {os.path.getsize(f'{name}/model.weights.h5'):,} bytes")
