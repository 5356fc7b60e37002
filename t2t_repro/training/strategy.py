"""Where a training runs: one device, the devices of a machine, or many machines."""

import json
import os

import tensorflow as tf

from t2t_repro.errors import UserError

NAMES = ("auto", "one_device", "mirrored", "multi_worker")


def choose(name: str, replicas: int = 0) -> tf.distribute.Strategy:
    """Returns a strategy by name; to be called before TensorFlow is used.

    Args:
        name: "one_device", "mirrored" (the GPUs of this machine),
            "multi_worker" (the machines of TF_CONFIG), or "auto": multi_worker with
            a TF_CONFIG of several workers, mirrored with several GPUs, else
            one_device.
        replicas: for "mirrored" without a GPU: split the CPU into as many devices.

    Raises:
        UserError: an unknown name, or replicas that the machine does not have.
    """
    if name not in NAMES:
        raise UserError(f"--strategy {name}: use one of {', '.join(NAMES)}")
    gpus = tf.config.list_physical_devices("GPU")
    if name == "auto":
        name = _automatic(len(gpus))
    if replicas < 0 or (replicas > 1 and name != "mirrored"):
        raise UserError(
            f"--replicas {replicas}: only --strategy mirrored takes it, from 1 up"
        )
    if name == "multi_worker":
        return tf.distribute.MultiWorkerMirroredStrategy()
    if name == "mirrored":
        return _mirrored(len(gpus), replicas)
    return tf.distribute.get_strategy()


def describe(strategy: tf.distribute.Strategy) -> str:
    """Says in one line what was chosen."""
    kind = {
        tf.distribute.MirroredStrategy: "mirrored",
        tf.distribute.MultiWorkerMirroredStrategy: "multi_worker",
    }.get(type(strategy), "one_device")
    count = strategy.num_replicas_in_sync
    device = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    return f"strategy {kind}: {count} replica{'s' if count > 1 else ''} on {device}"


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Says whether this process writes checkpoints and prints.

    It is the task "chief", or worker 0 in a cluster that names no chief.
    """
    resolver = strategy.cluster_resolver
    if resolver is None or resolver.task_type is None:
        return True
    if "chief" in resolver.cluster_spec().jobs:
        return bool(resolver.task_type == "chief")
    return resolver.task_id == 0


def _automatic(gpus: int) -> str:
    try:
        cluster = json.loads(os.environ.get("TF_CONFIG") or "{}").get("cluster", {})
        tasks = sum(len(addresses) for addresses in cluster.values())
    except (ValueError, AttributeError, TypeError):
        raise UserError(
            'TF_CONFIG is not JSON of the form {"cluster": {"worker": ["host:port"]}, '
            '"task": {"type": "worker", "index": 0}}; unset it or correct it'
        ) from None
    if tasks > 1:
        return "multi_worker"
    return "mirrored" if gpus > 1 else "one_device"


def _mirrored(gpus: int, replicas: int) -> tf.distribute.MirroredStrategy:
    if gpus:
        if replicas > gpus:
            raise UserError(f"--replicas {replicas}: this machine has {gpus} GPUs")
        devices = [f"GPU:{index}" for index in range(replicas or gpus)]
        return tf.distribute.MirroredStrategy(devices)
    count = max(replicas, 1)
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration() for _ in range(count)]
    )
    return tf.distribute.MirroredStrategy([f"CPU:{index}" for index in range(count)])
