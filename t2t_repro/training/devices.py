"""What the device that a training begins on decides: precision, XLA, size of parts.

Each value that a set leaves at "auto" is chosen once, written into the model directory
and kept on resume, wherever that runs.
"""

import ctypes
import os
from collections.abc import Collection
from dataclasses import dataclass

import tensorflow as tf

from t2t_repro.hparams import HParams
from t2t_repro.hparams.settings import AUTO

ROWS_MULTIPLE = 8
"""16-bit matrix products are fast where every side is a multiple of eight."""

USABLE = 0.9
"""Share of a GPU's memory that is planned with: its context and gaps take the rest."""

MARGIN = 1.5
"""Factor on what one part needs, for the formula is within 15 % of what was counted."""

UPDATES_FOR_XLA = 50_000
"""Updates from which on XLA is chosen on a GPU: it first compiles some 48 shapes, 40
(tiny) to 60 seconds (big) each on an H200. What it saves there is not measured yet."""

# float32 of every weight: itself, its gradient, Adam's two moments, the sum over parts,
# the sum over devices packed and unpacked, and its casts.
_COPIES = 8


@dataclass(frozen=True)
class Gpus:
    """The GPUs of this machine that TensorFlow may use; the weakest counts."""

    name: str
    capability: tuple[int, int]  # CUDA's compute capability.
    memory: int | None  # Bytes; None: unknown.

    @property
    def has_bfloat16(self) -> bool:
        """Whether products in bfloat16 are of the hardware."""
        return self.capability >= (8, 0)


def gpus() -> Gpus | None:
    """Returns what TensorFlow and CUDA's driver tell of the GPUs; None without one.

    TensorFlow's runtime is not started by it.
    """
    found = tf.config.list_physical_devices("GPU")
    if not found:
        return None
    details = [tf.config.experimental.get_device_details(one) for one in found]
    weakest = min(details, key=lambda one: one.get("compute_capability", (0, 0)))
    return Gpus(
        weakest.get("device_name", "GPU"),
        weakest.get("compute_capability", (0, 0)),
        _least_memory(len(found)),
    )


def _least_memory(count: int) -> int | None:
    """Returns the bytes of the smallest of the first GPUs; None if CUDA tells none."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    if cuda.cuInit(0):
        return None
    sizes = []
    for index in range(count):
        device, size = ctypes.c_int(), ctypes.c_size_t()
        if cuda.cuDeviceGet(ctypes.byref(device), index) or cuda.cuDeviceTotalMem_v2(
            ctypes.byref(size), device
        ):
            return None
        sizes.append(size.value)
    return min(sizes, default=None)


def resolve_auto(
    asked: HParams,
    kept: HParams | None,
    accepted: Collection[str],
    replicas: int,
    found: Gpus | None,
) -> tuple[HParams, list[str]]:
    """Returns a set without "auto", and what to tell of what was chosen and why.

    What a training began with (`kept`) stays, unless a change of it is `accepted`; the
    rest is chosen for `found`, None on a CPU, and `replicas` devices in all.
    """
    autos = asked.auto_fields()
    before = {
        name: getattr(kept, name)
        for name in autos
        if kept and name not in accepted and getattr(kept, name) != AUTO
    }
    part = asked.resolve_auto(**before)
    if found:
        part = asked.resolve_auto(
            **{
                "rows_multiple": ROWS_MULTIPLE,
                "precision": "bfloat16" if found.has_bfloat16 else "float32",
                "xla": found.has_bfloat16 and asked.train_steps >= UPDATES_FOR_XLA,
            }
            | before
        )
        if "max_tokens_per_device" in autos.keys() - before.keys():
            part = part.replace(
                max_tokens_per_device=tokens_for(part, found.memory, replicas)
            )
    lines = []
    if autos:
        told = ", ".join(f"{name} {_told(getattr(part, name))}" for name in autos)
        lines.append(f"{told}: {_reason(before, autos, found)}")
    if found and found.has_bfloat16 and part.precision == "float32":
        lines.append("products of float32 are TF32 on this GPU, TensorFlow's default")
    if found and part.xla:
        lines.append(
            "XLA compiles each shape of a part when it first comes, up to a minute "
            "each: the first updates are slow"
        )
    return part, lines


def tokens_for(hparams: HParams, memory: int | None, replicas: int) -> int:
    """Returns the positions a side of parts that fit and keep all replicas busy.

    As few parts of a batch as fit, a multiple of the replicas, but none smaller than
    the longest sentence. `memory` is of one device in bytes; unknown: a CPU's parts.
    """
    most = tokens_that_fit(hparams, memory) if memory else hparams.tokens_per_part
    batch = hparams.tokens_per_batch
    parts = replicas * -(-batch // (replicas * max(most, 1)))
    return max(-(-batch // parts), min(hparams.max_length, batch))


def tokens_that_fit(hparams: HParams, memory: int) -> int:
    """Returns how many positions a side a device of so many bytes can train on."""
    free = USABLE * memory - fixed_bytes(hparams)
    return max(
        0, int(free / (MARGIN * bytes_per_position(hparams, hparams.max_length)))
    )


def fixed_bytes(hparams: HParams) -> int:
    """Returns the bytes that weights and what is as large as they take."""
    attention = 2 * hparams.num_heads * (hparams.key_size + hparams.value_size)
    encoder = attention + 2 * hparams.d_ff
    decoder = 2 * attention + 2 * hparams.d_ff
    width = (
        hparams.num_layers * encoder
        + hparams.decoder_layers * decoder
        + hparams.vocab_size * (1 if hparams.share_embeddings else 3)
    )
    return _COPIES * 4 * hparams.d_model * width


def bytes_per_position(hparams: HParams, width: int) -> int:
    """Returns the bytes of temporaries of one position a side of a part.

    An encoder layer keeps about 12 vectors of d_model and 2 of d_ff for its gradient, a
    decoder layer 18 and 2, each attention two rows of `width` weights a head; of the
    logits there are a copy in the precision and one in float32.
    """
    size = 4 if hparams.precision == "float32" else 2
    layers = hparams.num_layers + hparams.decoder_layers
    attentions = layers + hparams.decoder_layers
    vectors = (12 * hparams.num_layers + 18 * hparams.decoder_layers) * hparams.d_model
    inner = 2 * layers * hparams.d_ff
    weights = 2 * attentions * hparams.num_heads * width
    return size * (vectors + inner + weights) + (size + 4) * hparams.vocab_size


def _told(value: object) -> str:
    return f"{value:,}" if type(value) is int else str(value).lower()


def _reason(before: Collection[str], autos: Collection[str], found: Gpus | None) -> str:
    """Says who chose: the device or the training so far."""
    if len(before) == len(autos):
        return "as this training began"
    if found is None:
        return "chosen for a CPU"
    major, minor = found.capability
    size = f"{found.memory / 1e9:.1f} GB" if found.memory else "memory unknown"
    return f"chosen for {found.name} (compute capability {major}.{minor}, {size})"


def compute_the_same_bits() -> None:
    """Lets whatever runs after it give the same bits on a GPU again and again.

    To be called before TensorFlow computes. XLA reads its own flag, which forbids
    atomic additions and the choice of kernels by their time.
    """
    tf.config.experimental.enable_op_determinism()
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{flags} --xla_gpu_deterministic_ops=true".strip()
