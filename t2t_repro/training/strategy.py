"""Distribution strategies: one device, several devices or several machines."""

import json
import os
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import tensorflow as tf

from t2t_repro import fast
from t2t_repro.fast.lanes import divide_cores
from t2t_repro.system.errors import UserError

_TF_CONFIG = (
    '{"cluster": {"worker": ["host:port"]}, "task": {"type": "worker", "index": 0}}'
)

NAMES = ("auto", "one_device", "mirrored", "multi_worker")

# Summing 88 MB of gradients over two processes on one machine takes 20 % less time in
# packs of 1 to 16 MiB than in a single pack.
_RING_PACK_BYTES = 4 * 2**20

# The workers of a job do not start at exactly the same time.
_PATIENCE_SECONDS = 3.0


def choose(
    name: str,
    replicas: int = 0,
    communication: str = "auto",
    xla: bool = False,
    log: Callable[[str], object] = print,
) -> tf.distribute.Strategy:
    """Returns a distribution strategy; must be called before TensorFlow is used.

    With several workers, it waits until all of them have started.

    Args:
        name: "one_device", "mirrored" (this machine's GPUs; without GPUs, the CPU split
            into `replicas` devices), "multi_worker" (the machines of TF_CONFIG or the
            tasks of a Slurm step) or "auto": multi_worker for several workers, mirrored
            for several GPUs, otherwise one_device.
        replicas: Number of devices for "mirrored"; 0: all GPUs, or the whole CPU.
        communication: Method for summing over workers: "nccl", "ring" (over gRPC) or
            "auto" (nccl for GPUs, otherwise ring).
        xla: Whether XLA compiles the gradient; it then distributes the work over the
            processor's cores itself.
        log: Function called with the workers that have not started.

    Raises:
        UserError: The name is unknown, the machine has fewer GPUs than replicas, or the
            cluster is not defined.
    """
    if name not in NAMES:
        raise UserError(f"--strategy {name}: use one of {', '.join(NAMES)}")
    if name in ("auto", "multi_worker"):
        _take_cluster_from_slurm()
    gpus = tf.config.list_physical_devices("GPU")
    if not xla and fast.uses("lanes"):
        divide_cores()
    if name == "auto":
        name = _automatic(len(gpus))
    if replicas < 0 or (replicas > 1 and name != "mirrored"):
        raise UserError(
            f"--replicas {replicas}: requires --strategy mirrored and a value of "
            "at least 1"
        )
    if name == "multi_worker":
        if _tasks() < 2:
            raise UserError(
                "--strategy multi_worker: neither TF_CONFIG nor Slurm defines several "
                f"workers; set TF_CONFIG to {_TF_CONFIG} for each of them, or start "
                "them with srun"
            )
        _wait_for_workers(*_addresses(), log)
        return tf.distribute.MultiWorkerMirroredStrategy(
            communication_options=_communication(communication, bool(gpus))
        )
    if name == "mirrored":
        return _make_mirrored(len(gpus), replicas)
    return tf.distribute.get_strategy()


def describe(strategy: tf.distribute.Strategy) -> str:
    """Returns one line with the strategy's name, number of replicas and device."""
    kind = {
        tf.distribute.MirroredStrategy: "mirrored",
        tf.distribute.MultiWorkerMirroredStrategy: "multi_worker",
    }.get(type(strategy), "one_device")
    count = strategy.num_replicas_in_sync
    device = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    return f"strategy {kind}: {count} replica{'s' if count > 1 else ''} on {device}"


def find_process(strategy: tf.distribute.Strategy) -> tuple[int, int]:
    """Returns this process's number and the number of processes.

    Number 0 is the chief: the task "chief", or worker 0 in clusters without this task.
    """
    resolver = strategy.cluster_resolver
    if resolver is None or resolver.task_type is None:
        return 0, 1
    jobs = resolver.cluster_spec().as_dict()
    before = "chief" in jobs and resolver.task_type != "chief"
    return before + resolver.task_id, sum(map(len, jobs.values()))


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Returns whether this process is the chief, which writes all files."""
    return find_process(strategy)[0] == 0


def _communication(
    name: str, has_gpus: bool
) -> tf.distribute.experimental.CommunicationOptions:
    """Returns the options for sums over workers.

    TensorFlow's default is gRPC even with GPUs.
    """
    if name == "auto":
        name = "nccl" if has_gpus else "ring"
    if name == "nccl" and not has_gpus:
        raise UserError(
            "--communication nccl requires GPUs, but this machine has none; use ring"
        )
    return tf.distribute.experimental.CommunicationOptions(
        implementation=name,
        bytes_per_pack=_RING_PACK_BYTES if name == "ring" else 0,
    )


def _automatic(gpus: int) -> str:
    if _tasks() > 1:
        return "multi_worker"
    return "mirrored" if gpus > 1 else "one_device"


def _tasks() -> int:
    """Returns the number of processes in TF_CONFIG; 0 if it is not set."""
    try:
        cluster = json.loads(os.environ.get("TF_CONFIG") or "{}").get("cluster", {})
        return sum(len(addresses) for addresses in cluster.values())
    except (ValueError, AttributeError, TypeError):
        raise _invalid_tf_config() from None


def _addresses() -> tuple[str, list[str]]:
    """Returns the address of this worker in TF_CONFIG, and those of the others."""
    try:
        config = json.loads(os.environ["TF_CONFIG"])
        cluster, task = config["cluster"], config["task"]
        own = cluster[task["type"]][int(task["index"])]
        int(own.rpartition(":")[2])
        return own, [each for job in cluster.values() for each in job if each != own]
    except (ValueError, AttributeError, TypeError, LookupError):
        raise _invalid_tf_config() from None


def _invalid_tf_config() -> UserError:
    return UserError(
        f"TF_CONFIG is not JSON of the form {_TF_CONFIG}; unset it or correct it"
    )


def _wait_for_workers(
    own: str, others: Sequence[str], log: Callable[[str], object]
) -> None:
    """Waits until all other workers accept connections; logs the missing ones.

    TensorFlow also waits for them, but silently, and it ignores Ctrl-C and SIGTERM
    meanwhile. Until TensorFlow listens on this worker's port, this function does.

    Args:
        own: Address of this worker, host:port.
        others: Addresses of the other workers.
        log: Function called with a message if workers are missing.
    """
    port = int(own.rpartition(":")[2])
    server = _server(port)
    if server is None:
        return  # TensorFlow reports that it cannot use the port.
    with server:
        server.setblocking(False)
        begun, logged = time.monotonic(), others[:0]
        while missing := [each for each in others if not _accepts(each)]:
            if missing != logged and time.monotonic() - begun > _PATIENCE_SECONDS:
                logged = missing
                log(
                    f"waiting for {len(missing)} of {len(others) + 1} workers: "
                    f"{', '.join(missing)}; run the same command there, or unset "
                    "TF_CONFIG to train on this machine only"
                )
            with suppress(OSError):  # Without another connection: BlockingIOError.
                while True:
                    server.accept()[0].close()
            time.sleep(0.2)


def _server(port: int) -> socket.socket | None:
    """Listens on a port, for IPv6 as well if possible; returns None if it cannot."""
    both: dict[str, Any] = {"family": socket.AF_INET6, "dualstack_ipv6": True}
    for options in (both, {}):
        with suppress(OSError, ValueError):
            return socket.create_server(("", port), **options)
    return None


def _accepts(address: str) -> bool:
    """Returns whether a process accepts connections at host:port."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=1).close()
    except (OSError, ValueError):
        return False
    return True


def _take_cluster_from_slurm() -> None:
    """Sets TF_CONFIG for the tasks of a Slurm step unless it is already set.

    TensorFlow's resolver fails without GPUs, so this function declares a fictitious GPU
    per task. `_take_own_gpus` then selects the task's real GPUs.
    """
    tasks = os.environ.get("SLURM_STEP_NUM_TASKS", "1")
    if os.environ.get("TF_CONFIG") or tasks == "1":
        return
    try:
        resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
            # Jobs on the same machine need different ports.
            port_base=20_000 + int(os.environ.get("SLURM_JOB_ID", "0")) % 20_000,
            gpus_per_node=int(tasks),
            gpus_per_task=1,
            auto_set_gpu=False,
        )
        cluster = resolver.cluster_spec().as_dict()
        kind, index = resolver.get_task_info()
    except (RuntimeError, ValueError) as error:
        raise UserError(
            f"cannot read the cluster from the Slurm step's variables ({error}); start "
            "the tasks with srun or set TF_CONFIG"
        ) from None
    task = {"type": kind, "index": index}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": task})
    _take_own_gpus(int(tasks))


def _take_own_gpus(tasks: int) -> None:
    """Restricts a Slurm task to its own GPUs among those that it can see.

    A single visible GPU was already assigned by Slurm (srun --gpus-per-task=1). NCCL
    can reach another task's GPU directly only if both tasks can see both GPUs.
    """
    gpus = tf.config.list_physical_devices("GPU")
    if len(gpus) < 2:
        return
    here = tasks // int(os.environ.get("SLURM_STEP_NUM_NODES", "1"))
    local, each = int(os.environ.get("SLURM_LOCALID", "0")), len(gpus) // max(here, 1)
    if each == 0:
        raise UserError(
            f"the {here} tasks of the Slurm step on this machine share {len(gpus)} "
            "GPUs; start at most one task per GPU (--ntasks-per-node, --gpus-per-node)"
        )
    tf.config.set_visible_devices(gpus[local * each : (local + 1) * each], "GPU")


def _make_mirrored(gpus: int, replicas: int) -> tf.distribute.MirroredStrategy:
    if replicas > gpus > 0:
        raise UserError(f"--replicas {replicas}: this machine has only {gpus} GPUs")
    kind, count = ("GPU" if gpus else "CPU"), (replicas or gpus or 1)
    if not gpus:
        tf.config.set_logical_device_configuration(
            tf.config.list_physical_devices("CPU")[0],
            [tf.config.LogicalDeviceConfiguration()] * count,
        )
    return tf.distribute.MirroredStrategy([f"{kind}:{i}" for i in range(count)])
