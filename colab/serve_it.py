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
# A trained model becomes a file that a server loads: text in, text out. We export one, look inside, start TensorFlow Serving where it can be had, and ask it from Python, from the command line and by plain HTTP.

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

# The tests of this notebook train for seconds. You want a real training.
QUICK = os.environ.get("T2T_REPRO_QUICK") == "1"

# %% [markdown]
# ## 1. A model
#
# Name the directory of a model that you have trained. If it is not there, a small one is trained on the built-in corpus, in ten minutes on two cores.

# %%
MODEL = "mymodel"
NAME = "mymodel"  # under which it is served

SET = "tiny"
if QUICK:
    SET = "tiny,d_model=64,d_ff=128,tokens_per_batch=1024,train_steps=60"
    SET += ",warmup_steps=80,checkpoint_steps=30,average_last=2,eval_steps=0"
    SET += ",decode_extra_length=5"
if os.path.isdir(MODEL):
    print(f"{MODEL}/ is there")
else:
    train = [sys.executable, "-m", "t2t_repro.train", "--hparams", SET]
    subprocess.run([*train, "--model_dir", MODEL], check=True)

# %% [markdown]
# ## 2. Export

# %%
# !python -m t2t_repro.export --model_dir {MODEL} --export_dir exported --model_name {NAME}
# !ls -R exported | head -40

# %% [markdown]
# `1/` is the first version; the next export becomes `2/`, and a server that runs takes it over. `models.config`, `batching_parameters.txt` and `compose.yaml` are for TensorFlow Serving. `assets.extra/` holds requests that warm it up, and a model card.
#
# ## 3. Without a server
#
# The file needs TensorFlow and the operations of `tensorflow_text`, and nothing of this package. This is all that an application has to do:

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
# Beside translating, the file can list the whole beam, score a translation that you give it, and show what every attention looked at:

# %%
for name, signature in sorted(model.signatures.items()):
    takes = ", ".join(signature.structured_input_signature[1])
    gives = ", ".join(sorted(signature.structured_outputs))
    print(f"{name}: takes {takes}; gives {gives}")

# %% [markdown]
# ## 4. TensorFlow Serving
#
# On a machine of your own with Docker, this is the whole of it:
#
#     cd exported && docker compose up
#
# In Colab there is no Docker. There the server can come from TensorFlow's own Debian packages, *if* they have one at least as new as the TensorFlow that exported: a server promises nothing for files from the future. `INSTALL = True` tries.

# %%
INSTALL = False
if INSTALL:
    source = "https://storage.googleapis.com/tensorflow-serving-apt"
    # !curl -fsSL {source}/tensorflow-serving.release.pub.gpg > /etc/apt/trusted.gpg.d/tensorflow-serving.asc
    # !echo "deb {source} stable tensorflow-model-server" > /etc/apt/sources.list.d/tensorflow-serving.list
    # !apt-get -qq update && apt-get -qq install tensorflow-model-server

# %% [markdown]
# If there is no server after all, we let a stand-in answer: thirty lines that speak TensorFlow Serving's REST for one model. It is **not** TensorFlow Serving. It merges no requests, watches no folder and would not stand a second user; but the client cannot tell the difference, so you can see the rest of the notebook work.

# %%
import json
import shutil
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class StandIn(BaseHTTPRequestHandler):
    """Answers `POST /v1/models/NAME:predict` with the signatures of the model."""

    def do_POST(self) -> None:
        """Runs a signature on the inputs of a request, given by columns."""
        length = int(self.headers["Content-Length"])
        request = json.loads(self.rfile.read(length))
        signature = model.signatures[request.get("signature_name", "serving_default")]
        inputs = {k: tf.constant(v, tf.string) for k, v in request["inputs"].items()}
        outputs = {k: self.as_lists(v) for k, v in signature(**inputs).items()}
        body = json.dumps({"outputs": outputs}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @staticmethod
    def as_lists(tensor: tf.Tensor) -> list:
        """Returns a tensor as nested lists, its texts as strings."""
        if tensor.dtype == tf.string:
            return json.loads(json.dumps(tensor.numpy().tolist(), default=bytes.decode))
        return tensor.numpy().tolist()

    def log_message(self, *_: object) -> None:
        """Is silent."""


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
    server = ThreadingHTTPServer(("127.0.0.1", 0), StandIn)
    PORT = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
print("TensorFlow Serving" if binary else "the stand-in", "listens on port", PORT)

# %% [markdown]
# ## 5. Ask it
#
# **From Python.** The client sends several requests at a time, waits while the server is busy (or starts), and keeps the order.

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
# **From the command line**, a line out for every line in:

# %%
# !printf 'half past four\nseventeen euros\n' | python -m t2t_repro.client --protocol rest --port {PORT} --model {NAME} --scores

# %% [markdown]
# **By plain HTTP**, from any language. `inputs` is by columns; `signature_name` chooses what is done.

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
    found = json.load(response)["outputs"]
print(found)
assert found

# %% [markdown]
# ## 6. Before others use it
#
# - The server asks nobody who they are. `compose.yaml` lets it listen to its own machine alone; put what knows your users in front.
# - What a request may cost is bounded: `--max_input_length` when exporting, `max_batch_size` in `batching_parameters.txt`.
# - A new version is written aside and renamed. A server never sees half of one.
# - `tools/benchmarks/load_test.py` of the repository measures latency and throughput of whatever serves.

# %%
server.terminate() if binary else server.shutdown()
