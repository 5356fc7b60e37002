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
# # Serve it
#
# This notebook exports a trained model as a SavedModel that translates plain text. It starts TensorFlow Serving, if it is available, and sends requests from Python, from the command line and by plain HTTP.

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
# ## 1. A model
#
# Set `MODEL` to the directory of a trained model. If the directory does not exist, the cell trains a small model on the built-in corpus, which takes ten minutes on two cores.

# %%
MODEL = "mymodel"
NAME = "mymodel"  # The name of the model on the server.

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

# %% [markdown]
# ## 2. Export

# %%
# !python -m t2t_repro.export --model_dir {MODEL} --export_dir exported --model_name {NAME}
# !ls -R exported | head -40

# %% [markdown]
# `1/` is the first version. The next export creates `2/`, which a running server loads automatically. `models.config`, `batching_parameters.txt` and `compose.yaml` configure TensorFlow Serving. `assets.extra/` contains warm-up requests and a model card.
#
# ## 3. Use it without a server
#
# The SavedModel needs only TensorFlow and the operations of `tensorflow_text`; this package is not required. An application loads and calls it like this:

# %%
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf
import tensorflow_text  # noqa: F401  Registers the tokenizer's operations.

versions = sorted(int(name) for name in os.listdir("exported") if name.isdecimal())
model = tf.saved_model.load(f"exported/{versions[-1]}")
answer = model.signatures["serving_default"](
    text=tf.constant(["half past four", "seventeen euros"])
)
for text, score in zip(
    answer["translations"].numpy(), answer["scores"].numpy(), strict=True
):
    print(f"{score:8.3f}  {text.decode()}")

# %% [markdown]
# Other signatures return the n-best list, score a given translation, and return the attention weights:

# %%
for name, signature in sorted(model.signatures.items()):
    takes = ", ".join(signature.structured_input_signature[1])
    gives = ", ".join(sorted(signature.structured_outputs))
    print(f"{name}: takes {takes}; gives {gives}")

# %% [markdown]
# ## 4. TensorFlow Serving
#
# On your own machine with Docker, one command starts the server:
#
#     cd exported && docker compose up
#
# Docker is not available in Colab. There, set `INSTALL = True` to install the server from TensorFlow's Debian packages. The server should be at least as new as the TensorFlow that exported the model, because older servers may not be able to load it.

# %%
INSTALL = False
if INSTALL:
    source = "https://storage.googleapis.com/tensorflow-serving-apt"
    # !curl -fsSL {source}/tensorflow-serving.release.pub.gpg > /etc/apt/trusted.gpg.d/tensorflow-serving.asc
    # !echo "deb {source} stable tensorflow-model-server" > /etc/apt/sources.list.d/tensorflow-serving.list
    # !apt-get -qq update && apt-get -qq install tensorflow-model-server

# %% [markdown]
# If the server is not installed, the next cell starts `python -m t2t_repro.serve`, which has TensorFlow Serving's REST interface and merges requests as it does. It is **not** TensorFlow Serving: it serves one version over REST only, without monitoring. It is sufficient for the rest of this notebook.

# %%
import json
import re
import shutil
import sys
import time
import urllib.request

binary = shutil.which("tensorflow_model_server")
if binary:
    server = subprocess.Popen(
        [
            binary,
            f"--model_name={NAME}",
            f"--model_base_path={os.path.abspath('exported')}",
            "--port=8500",
            "--rest_api_port=8501",
            "--enable_batching=true",
            "--batching_parameters_file=exported/batching_parameters.txt",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    PORT = 8501
else:
    flags = ["--export_dir", "exported", "--port", "0"]  # 0: a free port.
    server = subprocess.Popen(
        [sys.executable, "-m", "t2t_repro.serve", *flags],
        stdout=subprocess.PIPE,
        text=True,
    )
    line = server.stdout.readline()
    PORT = int(re.search(r":(\d+)/", line)[1])
print("TensorFlow Serving" if binary else "t2t_repro.serve", "listens on port", PORT)

# %% [markdown]
# ## 5. Send requests
#
# **From Python.** The client sends several requests at once, retries while the server is busy or starting, and returns the results in input order.

# %%
from t2t_repro.serving.client import Client
from t2t_repro.serving.transport import Server

sentences = ["half past four", "seventeen euros", "on the twenty-first of May"] * 4
where = Server("localhost", PORT, NAME, "rest", retries=8)
began = time.monotonic()
with Client(where, 4, 2) as client:
    answers = list(client.translate(sentences))
print(f"{len(answers)} sentences in {time.monotonic() - began:.2f} s")
for source, (translation, score) in zip(sentences[:3], answers, strict=False):
    print(f"{source}  ->  {translation}  ({score:.3f})")
assert len(answers) == len(sentences)

# %% [markdown]
# **From the command line**, with one output line per input line:

# %%
# !printf 'half past four\nseventeen euros\n' | python -m t2t_repro.client --protocol rest --port {PORT} --model {NAME} --scores

# %% [markdown]
# **By plain HTTP**, from any language. `inputs` maps each input to a list of values, and `signature_name` selects the signature.

# %%
body = {
    "signature_name": "score",
    "inputs": {"text": ["half past four"], "translation": ["halb fünf"]},
}
request = urllib.request.Request(
    f"http://localhost:{PORT}/v1/models/{NAME}:predict",
    data=json.dumps(body).encode(),
    headers={"Content-Type": "application/json"},
)
with urllib.request.urlopen(request) as response:
    outputs = json.load(response)["outputs"]
print(outputs)
assert outputs

# %% [markdown]
# ## 6. Before you open it to others
#
# - The server does no authentication. `compose.yaml` binds it to localhost; put an authenticating proxy in front of it.
# - Limit the cost of a request with `--max_input_length` when you export and `max_batch_size` in `batching_parameters.txt`.
# - New versions are written to a temporary name and renamed, so a server never loads an incomplete one.

# %%
server.terminate()
