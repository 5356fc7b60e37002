"""Where a training runs: one device, the devices of a machine, or many machines."""

import contextlib
import json
import os

import tensorflow as tf

from t2t_repro.system.cores import usable_cores
from t2t_repro.system.errors import UserError

_TF_CONFIG = (
    '{"cluster": {"worker": ["host:port"]}, "task": {"type": "worker", "index": 0}}'
)

NAMES = ("auto", "one_device", "mirrored", "multi_worker")

_CPU_LANES = 2


def choose(name: str, replicas: int = 0) -> tf.distribute.Strategy:
    """Returns a strategy by name; to be called before TensorFlow is used.

    "one_device", "mirrored" (this machine's GPUs; without one, the CPU split into
    `replicas` devices), "multi_worker" (the machines of TF_CONFIG, or the tasks of a
    Slurm step), or "auto": multi_worker where there are several of those, mirrored with
    several GPUs, else one_device. Raises UserError for an unknown name, replicas that
    the machine does not have, or a cluster that is not described.
    """
    if name not in NAMES:
        raise UserError(f"--strategy {name}: use one of {', '.join(NAMES)}")
    if name in ("auto", "multi_worker"):
        _take_cluster_from_slurm()
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        _give_each_lane_cores()
    if name == "auto":
        name = _automatic(len(gpus))
    if replicas < 0 or (replicas > 1 and name != "mirrored"):
        raise UserError(
            f"--replicas {replicas}: only --strategy mirrored takes it, from 1 up"
        )
    if name == "multi_worker":
        if _tasks() < 2:
            raise UserError(
                "--strategy multi_worker: neither TF_CONFIG nor Slurm names several "
                f"workers; set {_TF_CONFIG} for each, or start them with srun"
            )
        return tf.distribute.MultiWorkerMirroredStrategy()
    if name == "mirrored":
        return _mirrored(len(gpus), replicas)
    return tf.distribute.get_strategy()


def lanes() -> int:
    """Returns into how many cuts a device divides what it computes side by side.

    On a CPU two: the cores wait for each other once, not after each operation. Always
    two, so that dropout's masks do not depend on the number of cores.
    """
    return 1 if tf.config.list_physical_devices("GPU") else _CPU_LANES


def describe(strategy: tf.distribute.Strategy) -> str:
    """Says in one line what was chosen."""
    kind = {
        tf.distribute.MirroredStrategy: "mirrored",
        tf.distribute.MultiWorkerMirroredStrategy: "multi_worker",
    }.get(type(strategy), "one_device")
    count = strategy.num_replicas_in_sync
    device = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    return f"strategy {kind}: {count} replica{'s' if count > 1 else ''} on {device}"


def process_of(strategy: tf.distribute.Strategy) -> tuple[int, int]:
    """Returns this process's number and how many there are; 0 is the chief.

    That is the task "chief", or worker 0 without one.
    """
    resolver = strategy.cluster_resolver
    if resolver is None or resolver.task_type is None:
        return 0, 1
    jobs = resolver.cluster_spec().as_dict()
    before = "chief" in jobs and resolver.task_type != "chief"
    return before + resolver.task_id, sum(map(len, jobs.values()))


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Says whether this process writes."""
    return process_of(strategy)[0] == 0


def _give_each_lane_cores() -> None:
    """Divides the cores among the lanes, unless TensorFlow has computed something."""
    with contextlib.suppress(RuntimeError):
        tf.config.threading.set_intra_op_parallelism_threads(
            max(1, usable_cores() // _CPU_LANES)
        )


def _automatic(gpus: int) -> str:
    if _tasks() > 1:
        return "multi_worker"
    return "mirrored" if gpus > 1 else "one_device"


def _tasks() -> int:
    """Returns how many processes TF_CONFIG names; 0 where there is none."""
    try:
        cluster = json.loads(os.environ.get("TF_CONFIG") or "{}").get("cluster", {})
        return sum(len(addresses) for addresses in cluster.values())
    except (ValueError, AttributeError, TypeError):
        raise UserError(
            f"TF_CONFIG is not JSON of the form {_TF_CONFIG}; unset it or correct it"
        ) from None


def _take_cluster_from_slurm() -> None:
    """Sets TF_CONFIG for the tasks of a Slurm step, unless it is set.

    GPUs are left to Slurm (srun --gpus-per-task), which knows what it gave to whom; the
    resolver fails where there is none, so it is told of one a task.
    """
    tasks = os.environ.get("SLURM_STEP_NUM_TASKS", "1")
    if os.environ.get("TF_CONFIG") or tasks == "1":
        return
    try:
        resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
            # Jobs that share a machine should not share a port.
            port_base=20_000 + int(os.environ.get("SLURM_JOB_ID", "0")) % 20_000,
            gpus_per_node=int(tasks),
            gpus_per_task=1,
            auto_set_gpu=False,
        )
        cluster = resolver.cluster_spec().as_dict()
        kind, index = resolver.get_task_info()
    except (RuntimeError, ValueError) as error:
        raise UserError(
            f"the variables of the Slurm step describe no cluster: {error}"
        ) from None
    task = {"type": kind, "index": index}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": task})


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
