"""Tests of the choice of strategies, and of training with each of them."""

import io
import json
import os
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from itertools import count, product
from pathlib import Path
from queue import Queue
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro import fast
from t2t_repro.runs import checkpoints
from t2t_repro.system.errors import UserError
from t2t_repro.training import strategy
from t2t_repro.training.loop import TrainingLoop
from t2t_repro.training.monitor import Monitor
from t2t_repro.training.workers import Workers
from tests import forks
from tests.training import toy

# With dropout: the masks of a whole micro-batch do not depend on its replica.
PARTS = toy.HPARAMS.replace(train_steps=3, max_tokens_per_device=24)
# Without dropout, because the masks of a sliced micro-batch depend on the slicing.
SLICED = toy.HPARAMS.replace(
    dropout=0.0, attention_dropout=0.0, ffn_dropout=0.0, train_steps=6
)


def uneven_batches(step):
    """Yields batches of three short rows for one replica and two long ones."""
    keep = np.array([[2], [2], [2], [8], [8]]) > np.arange(8)
    for number in count(step):
        sides = toy.rectangle(number).items()
        yield toy.pack({name: np.where(keep, ids, 0) for name, ids in sides})


def train(directory, name, replicas):
    """Trains three steps with three micro-batches, and resumes with a single one.

    The sums of the first three steps are ordered; the single micro-batch is sliced.
    Both trainings use the same strategy, because a process can have only one.
    """
    chosen = strategy.choose(name, replicas)
    assert chosen.num_replicas_in_sync == (1 if name == "one_device" else 2)
    chief = strategy.is_chief(chosen)
    for done, hparams, batches in (
        (0, PARTS, toy.batches_of_microbatches),
        (3, SLICED, uneven_batches),
    ):
        with chosen.scope():
            model = toy.model(hparams)
        loop = TrainingLoop(
            model, hparams, chosen, Path(directory), chief, ordered=not done
        )
        # On resuming, each worker has different wrong weights: the chief must restore
        # the right ones and send them to the others.
        for variable in (*loop.weights.values(), *loop.state.values()):
            variable.assign(variable + done * (1.5 - chief))
        assert loop.restore() == done
        assert len(loop.unreported) == done
        monitor = Monitor(None, 100, done, io.StringIO(), loop.unreported)
        assert loop.run(batches, monitor, toy.never)


def free_addresses(count):
    """Returns local addresses with free ports."""
    sockets = [socket.create_server(("localhost", 0)) for _ in range(count)]
    addresses = [f"localhost:{s.getsockname()[1]}" for s in sockets]
    for open_socket in sockets:
        open_socket.close()
    return addresses


def worker_environments(count):
    """Returns the environment variables of each worker of a cluster."""
    cluster = {"worker": free_addresses(count)}
    tasks = ({"type": "worker", "index": index} for index in range(count))
    return [
        {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})} for task in tasks
    ]


def assert_same(actual, expected):
    """Asserts that the checkpoints of both trainings have equal tensors."""
    folders = map(checkpoints.list_checkpoints, (expected, actual))
    pairs = list(zip(*folders, strict=True))
    assert [(one.step, two.step) for one, two in pairs] == [(3, 3), (6, 6)]
    for (one, two), file in product(pairs, ("weights", "optimizer")):
        theirs, ours = one.tensors(file), two.tensors(file)
        assert theirs.shapes() == ours.shapes()
        for name in theirs.shapes():
            our, their = ours.read(name), theirs.read(name)
            if one.step == 3:  # Ordered sums have the same bits.
                assert our.tobytes() == their.tobytes(), name
            np.testing.assert_allclose(our, their, atol=3e-5, err_msg=name)


def cluster(kinds, task_type, task_id):
    """Returns a fake strategy with a cluster resolver for the given task."""
    addresses = {kind: [f"host:{i}" for i in range(n)] for kind, n in kinds.items()}
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(addresses), task_type=task_type, task_id=task_id
    )
    return SimpleNamespace(cluster_resolver=resolver)


def print_threads(lanes, xla):
    """Prints the number of threads per operation; 0 means all cores."""
    if lanes:
        fast.install()
    strategy.choose("auto", xla=xla)
    print(tf.config.threading.get_intra_op_parallelism_threads())


@pytest.mark.medium
def test_a_cpu_process_divides_its_cores_among_the_lanes():
    half = max(1, len(os.sched_getaffinity(0)) // 2)
    # XLA distributes its work over the cores itself.
    expected = {(True, False): half, (True, True): 0, (False, False): 0}
    results = forks.run(print_threads, *expected, CUDA_VISIBLE_DEVICES="-1")
    assert [(one.status, one.out) for one in results] == [
        (0, f"{each}\n") for each in expected.values()
    ]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Returns a folder with the trainings of each strategy and worker."""
    folder = tmp_path_factory.mktemp("trainings")
    clusters = [{}, *worker_environments(2)]
    calls = [("mirrored", "mirrored", 2), ("chief", "auto", 0), ("worker", "auto", 0)]
    paths = [(str(folder / name), *settings) for name, *settings in calls]
    running = forks.Forks(train, *paths, environments=clusters)
    train(folder / "one_device", "one_device", 0)
    for result in running.finish():
        assert result.status == 0, result.err[-3000:]
        assert "retracing" not in result.err
    return folder


@pytest.mark.medium
def test_two_replicas_with_uneven_shards_train_like_one_device(trained):
    assert_same(trained / "mirrored", trained / "one_device")


@pytest.mark.medium
def test_two_workers_train_like_one_device_and_only_the_chief_writes(trained):
    assert_same(trained / "chief", trained / "one_device")
    assert not (trained / "worker").exists()


def test_a_machine_without_gpus_uses_one_device(monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
    chosen = strategy.choose("auto")
    assert chosen is tf.distribute.get_strategy()
    assert strategy.describe(chosen) == "strategy one_device: 1 replica on CPU"
    assert strategy.is_chief(chosen)


def test_a_cluster_of_one_worker_is_not_multi_worker(monkeypatch):
    config = {"cluster": {"worker": ["localhost:1"]}, "task": {}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    assert strategy._automatic(gpus=0) == "one_device"
    assert strategy._automatic(gpus=2) == "mirrored"


def test_a_cluster_of_several_tasks_is_multi_worker(monkeypatch):
    config = {"cluster": {"chief": ["a:1"], "worker": ["b:1"]}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    assert strategy._automatic(gpus=1) == "multi_worker"


@pytest.mark.parametrize("text", ["{", "[]", '{"cluster": 3}', '{"cluster": {"a": 1}}'])
def test_rejects_malformed_tf_config(monkeypatch, text):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(UserError, match="TF_CONFIG is not JSON of the form"):
        strategy.choose("auto")


def test_rejects_an_unknown_strategy():
    with pytest.raises(UserError, match="--strategy tpu: use one of auto, one_device"):
        strategy.choose("tpu")


@pytest.mark.parametrize(
    ("name", "replicas"), [("one_device", 2), ("multi_worker", 2), ("mirrored", -1)]
)
def test_rejects_invalid_replicas(name, replicas):
    with pytest.raises(
        UserError, match=f"--replicas {replicas}: requires --strategy mirrored"
    ):
        strategy.choose(name, replicas)


def test_rejects_more_replicas_than_gpus(monkeypatch):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [kind] * 2)
    with pytest.raises(UserError, match="--replicas 3: this machine has only 2 GPUs"):
        strategy.choose("mirrored", 3)


@pytest.mark.parametrize(
    ("name", "has_gpus", "expected"),
    [
        ("auto", True, "NCCL"),
        ("auto", False, "RING"),
        ("ring", True, "RING"),
        ("nccl", True, "NCCL"),
    ],
)
def test_gpus_use_nccl_by_default(name, has_gpus, expected):
    options = strategy._communication(name, has_gpus)
    assert options.implementation.name == expected


def test_rejects_nccl_without_a_gpu():
    with pytest.raises(UserError, match="--communication nccl requires GPUs"):
        strategy._communication("nccl", has_gpus=False)


@pytest.mark.parametrize(
    ("gpus", "tasks", "nodes", "local", "expected"),
    [
        (8, 16, 2, 3, [3]),
        (8, 8, 2, 1, [2, 3]),
        (8, 2, 2, 0, [0, 1, 2, 3, 4, 5, 6, 7]),
        (1, 16, 2, 3, None),  # Slurm has already assigned one GPU.
    ],
)
def test_a_slurm_task_takes_its_share_of_the_gpus(
    monkeypatch, gpus, tasks, nodes, local, expected
):
    visible = []
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda _: [*range(gpus)])
    monkeypatch.setattr(
        tf.config, "set_visible_devices", lambda gpus, _: visible.append(gpus)
    )
    monkeypatch.setenv("SLURM_STEP_NUM_NODES", str(nodes))
    monkeypatch.setenv("SLURM_LOCALID", str(local))
    strategy._take_own_gpus(tasks)
    assert visible == ([] if expected is None else [expected])


def test_rejects_more_tasks_than_gpus(monkeypatch):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda _: [0, 1])
    monkeypatch.setenv("SLURM_STEP_NUM_NODES", "2")
    with pytest.raises(UserError, match=r"the 4 tasks .* on this machine share 2 GPUs"):
        strategy._take_own_gpus(8)


@pytest.mark.parametrize(
    ("kinds", "task_type", "task_id", "expected"),
    [
        ({"worker": 2}, "worker", 0, True),
        ({"worker": 2}, "worker", 1, False),
        ({"chief": 1, "worker": 2}, "chief", 0, True),
        ({"chief": 1, "worker": 2}, "worker", 0, False),
    ],
)
def test_exactly_one_task_is_the_chief(kinds, task_type, task_id, expected):
    assert strategy.is_chief(cluster(kinds, task_type, task_id)) is expected


def listening(address):
    host, port = address.split(":")
    return socket.create_server((host, int(port)))


@pytest.mark.parametrize(
    ("count", "whole", "expected"),
    [(8, False, {2, 3, 6, 7}), (2, False, {1}), (2, True, set())],
)
def test_a_worker_takes_the_micro_batches_of_its_replicas(count, whole, expected):
    """The second of two workers with two replicas each has replicas 2 and 3."""
    fake = cluster({"worker": 2}, "worker", 1)
    fake.num_replicas_in_sync = 4
    assert Workers(fake, whole).own_microbatches(count) == expected


def test_a_worker_waits_for_the_others_and_names_them(monkeypatch):
    monkeypatch.setattr(strategy, "_PATIENCE_SECONDS", 0.0)
    own, one, other = free_addresses(3)
    lines = Queue()
    with ThreadPoolExecutor(1) as pool, listening(one):
        waits = pool.submit(strategy._wait_for_workers, own, [one, other], lines.put)
        line = lines.get(timeout=60)
        assert line.startswith(f"waiting for 1 of 3 workers: {other}; run the same")
        assert strategy._accepts(own)
        assert not waits.done()
        with listening(other):
            waits.result(timeout=60)
    assert lines.empty()


def test_a_waiting_worker_can_be_interrupted(monkeypatch):
    monkeypatch.setattr(strategy, "_PATIENCE_SECONDS", 0.0)

    def interrupt(line):
        signal.raise_signal(signal.SIGINT)

    own, other = free_addresses(2)
    # A shell starts background processes with SIGINT ignored.
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            strategy._wait_for_workers(own, [other], interrupt)
    finally:
        signal.signal(signal.SIGINT, earlier)
