"""Resolves "auto" hyper-parameters (precision, micro-batch size) for the device.

Each value is chosen when a training run starts, stored in the model directory and kept
on resume, even on another device. `compilation` chooses those that depend on the data.
"""

import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import tensorflow as tf

from t2t_repro.hparams import HParams
from t2t_repro.hparams.settings import AUTO
from t2t_repro.system.gpus import driver_devices
from t2t_repro.training.memory import tokens_that_fit

ROWS_MULTIPLE = 8
"""16-bit matmuls are fast if all dimensions are multiples of eight."""


@dataclass(frozen=True)
class Gpus:
    """Properties of the weakest GPU that TensorFlow can use on this machine.

    Attributes:
        name: Name of the device.
        capability: CUDA compute capability (major, minor).
        memory: Memory of the smallest GPU in bytes; None if unknown.
    """

    name: str
    capability: tuple[int, int]
    memory: int | None

    @property
    def has_bfloat16(self) -> bool:
        """Whether the hardware supports bfloat16 matmuls."""
        return self.capability >= (8, 0)


def gpus() -> Gpus | None:
    """Returns the properties of this machine's GPUs; None without a GPU.

    The call does not initialize TensorFlow's runtime.
    """
    devices = tf.config.list_physical_devices("GPU")
    if not devices:
        return None
    details = [tf.config.experimental.get_device_details(gpu) for gpu in devices]
    weakest = min(details, key=lambda gpu: gpu.get("compute_capability", (0, 0)))
    memories = [memory for _, memory in driver_devices()[: len(devices)]]
    return Gpus(
        weakest.get("device_name", "GPU"),
        weakest.get("compute_capability", (0, 0)),
        min(memories, default=None),
    )


def resolve_auto(
    requested: HParams,
    earlier: HParams | None,
    accepted: Collection[str],
    replicas: int,
    hardware: Gpus | None,
) -> tuple[HParams, list[str]]:
    """Replaces "auto" hyper-parameters with values for the device.

    Args:
        requested: Hyper-parameters of this run.
        earlier: Hyper-parameters of the training run to resume, whose values are kept;
            None for a new run.
        accepted: Names of hyper-parameters that may differ from `earlier`.
        replicas: Number of devices of all processes.
        hardware: GPUs of this machine; None for a CPU.

    Returns:
        The resolved hyper-parameters, and log lines that explain them. `xla` and
        `max_shapes` remain "auto" where `compilation.resolve` chooses them.
    """
    autos = requested.auto_fields()
    before = {
        name: getattr(earlier, name)
        for name in autos
        if earlier and name not in accepted and getattr(earlier, name) != AUTO
    }
    chosen = dict(before)
    if hardware:
        chosen = {
            "rows_multiple": ROWS_MULTIPLE,
            "precision": "bfloat16" if hardware.has_bfloat16 else "float32",
            "xla": AUTO if hardware.has_bfloat16 else False,
        } | before
    if requested.resolve_auto(**chosen).xla:
        chosen = {"max_shapes": AUTO} | chosen
    resolved = requested.resolve_auto(**chosen)
    if hardware and "max_tokens_per_device" in autos.keys() - before.keys():
        tokens = choose_tokens(resolved, hardware.memory, replicas)
        resolved = resolved.replace(max_tokens_per_device=tokens)
    lines = []
    if values := format_settings(resolved, autos):
        lines.append(f"{values}: {_reason(before, autos, hardware)}")
    if hardware and hardware.has_bfloat16 and resolved.precision == "float32":
        lines.append("float32 matmuls use TF32 on this GPU (TensorFlow's default)")
    return resolved, lines


def format_settings(hparams: HParams, names: Iterable[str]) -> str:
    """Returns names and values of hyper-parameters.

    Omits those that are "auto" and, unless the batches have buckets, `max_shapes`.
    """
    values = {name: getattr(hparams, name) for name in names}
    if hparams.batching != "buckets":
        values.pop("max_shapes", None)
    return ", ".join(f"{n} {_format(v)}" for n, v in values.items() if v != AUTO)


def choose_tokens(hparams: HParams, memory: int | None, replicas: int) -> int:
    """Returns `max_tokens_per_device`, the positions per side of a micro-batch.

    A batch is divided into the smallest number of micro-batches that is a multiple of
    `replicas` and for which each one fits into memory. A micro-batch has room for the
    longest row in any case.

    Args:
        hparams: Hyper-parameters without "auto" for precision.
        memory: Memory of one device in bytes; None if it is unknown, which selects the
            micro-batch size of a CPU.
        replicas: Number of devices.
    """
    limit = (
        tokens_that_fit(hparams, memory) if memory else hparams.tokens_per_microbatch
    )
    batch = hparams.tokens_per_batch
    micro_batches = replicas * -(-batch // (replicas * max(limit, 1)))
    return max(-(-batch // micro_batches), min(hparams.longest_row, batch))


def _format(value: object) -> str:
    return f"{value:,}" if type(value) is int else str(value).lower()


def _reason(
    before: Collection[str], autos: Collection[str], hardware: Gpus | None
) -> str:
    """Returns the reason for the values: the resumed training run or the device."""
    if len(before) == len(autos):
        return "kept from the start of this training"
    if hardware is None:
        return "chosen for a CPU"
    major, minor = hardware.capability
    size = f"{hardware.memory / 1e9:.1f} GB" if hardware.memory else "memory unknown"
    return f"chosen for {hardware.name} (compute capability {major}.{minor}, {size})"


def compute_the_same_bits() -> None:
    """Makes operations deterministic, so that runs on a GPU are bit-identical.

    Call it before TensorFlow computes anything. XLA has a separate flag, which forbids
    atomic additions and the choice of kernels by measured time. Without this choice,
    Triton's matmuls made a step 16 times as slow on an H100 (docs/speed.md), so they
    are disabled, unless XLA_FLAGS enables them.
    """
    tf.config.experimental.enable_op_determinism()
    flags = (
        "--xla_gpu_enable_triton_gemm=false",
        *os.environ.get("XLA_FLAGS", "").split(),
        "--xla_gpu_deterministic_ops=true",
    )
    os.environ["XLA_FLAGS"] = " ".join(flags)
