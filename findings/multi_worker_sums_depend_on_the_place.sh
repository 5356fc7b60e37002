#!/usr/bin/env bash
# TensorFlow 2.21.0: MultiWorkerMirroredStrategy adds equal numbers to different sums.
#
# A good engineer would guess that an all-reduce adds the values of the workers in one
# order, so that equal inputs give equal sums at all places of a tensor. Three workers
# contribute 1e8, 1 and -1e8 at each of 3,000 places. Two thirds of the sums are 0 and
# one third is 1: the ring cuts the tensor into a piece for each worker, and adds each
# piece from another worker on. Of 12 places, which are too few to be cut, all sums are
# equal. Two workers always agree, because the sum of two numbers has one order.
#
# Meaning for translation models: with three or more workers, the rounding of a gradient
# depends on its place in the tensor, and the pieces on the number of workers. Training
# on another number of workers is therefore equal up to rounding only.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --no-compile 'tensorflow==2.21.0' 'numpy<3'

cat > "$folder/worker.py" <<'PYTHON'
import sys

import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()


@tf.function
def add(size):
    context = tf.distribute.get_replica_context()
    value = tf.constant([1e8, 1.0, -1e8])[context.replica_id_in_sync_group]
    return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.fill([size], value))


sums = [strategy.run(add, [size]).numpy().tolist() for size in (12, 3000)]
counts = [{value: each.count(value) for value in set(each)} for each in sums]
print("sums and their numbers of places, of 12 and of 3,000:", *counts)
if list(counts[0]) != [0.0] or counts[1].keys() != {0.0, 1.0}:
    sys.exit("changed: the order of additions does not depend on the place")
PYTHON

"$folder/venv/bin/python" - "$folder/worker.py" <<'PYTHON'
import json
import os
import socket
import subprocess
import sys

sockets = [socket.create_server(("localhost", 0)) for _ in range(3)]
addresses = [f"localhost:{each.getsockname()[1]}" for each in sockets]
for each in sockets:
    each.close()
workers = []
for index in range(3):
    task = {"type": "worker", "index": index}
    config = {"cluster": {"worker": addresses}, "task": task}
    settings = {"TF_CONFIG": json.dumps(config), "TF_CPP_MIN_LOG_LEVEL": "3"}
    workers.append(
        subprocess.Popen(
            [sys.executable, sys.argv[1]],
            env={**os.environ, **settings},
            stdout=None if index == 0 else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    )
sys.exit(max(worker.wait() for worker in workers))
PYTHON
