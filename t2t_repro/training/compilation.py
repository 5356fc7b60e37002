"""Chooses whether XLA compiles, and for how many shapes, by the expected time.

XLA compiles one program per shape of a micro-batch. Fewer shapes cost less compilation
and more padding. The constants come from measurements on one H200 and one H100
(docs/speed.md) and from data sheets; an error of a factor of two changes the expected
time little, because the minimum over the number of shapes is flat.
"""

from collections.abc import Mapping
from dataclasses import replace

from t2t_repro.batches.batching import BatchingConfig, plan_epoch
from t2t_repro.data.encoded_pairs import IntArray
from t2t_repro.hparams import HParams
from t2t_repro.hparams.fields import CPU_DEFAULTS
from t2t_repro.hparams.settings import AUTO
from t2t_repro.system.cores import usable_cores
from t2t_repro.system.errors import format_count
from t2t_repro.training.devices import Gpus, format_settings
from t2t_repro.training.memory import matmul_weights

SHAPES = (4, 8, 12, 16, 24, 32, 48)
"""Maximum numbers of shapes to choose from."""

SAMPLE = 100_000
"""Number of pairs that the padding is estimated from."""

GAIN = 3.0
"""Time of a step without XLA relative to a step with XLA: 161 and 52 ms on an H100 for
big in bfloat16 with 12,480 positions."""

UTILIZATION = 0.32
"""Fraction of a GPU's peak that a step reaches: big, 12,480 positions, on an H200."""

# Peak of dense bfloat16 matmuls in FLOP/s, by the first compute capability: V100
# (float16), A100, RTX 3090, L40S, H100 and H200, B200.
_PEAKS = {
    (0, 0): 125e12,
    (8, 0): 312e12,
    (8, 6): 71e12,
    (8, 9): 362e12,
    (9, 0): 989e12,
    (10, 0): 2250e12,
}

_CPU_CORE = 100e9
"""FLOP/s that a step reaches per processor core: 56 to 193 (base in float32)."""


def training_seconds(
    steps: int,
    step_seconds: float,
    compile_seconds: float,
    token_ratios: Mapping[int, float],
) -> dict[int, float]:
    """Returns the time of compilation and training by number of shapes.

    All steps have the same number of positions. With more padding, the same number of
    tokens needs more steps, so the time is ``shapes * compile_seconds + steps *
    step_seconds * r / token_ratios[shapes]``, where r is the highest token ratio.

    Args:
        steps: Number of steps left.
        step_seconds: Time of a step.
        compile_seconds: Time to compile one shape. Devices compile at the same time.
        token_ratios: Token ratio of the corpus by number of shapes.
    """
    highest = max(token_ratios.values())
    return {
        shapes: shapes * compile_seconds + steps * step_seconds * (highest / ratio)
        for shapes, ratio in token_ratios.items()
    }


def token_ratios(
    lengths: IntArray, config: BatchingConfig, numbers: tuple[int, ...]
) -> dict[int, float]:
    """Returns the token ratio of a corpus by number of shapes that a plan has.

    Args:
        lengths: int (pairs, 2), source and target tokens of each pair, EOS included. A
            large corpus is estimated from every n-th pair.
        config: Batching settings.
        numbers: Values of `max_shapes` to try. A small corpus may have fewer shapes.

    Raises:
        UserError: If no pair is short enough.
    """
    sample = lengths[:: max(1, len(lengths) // SAMPLE)]
    plans = [plan_epoch(sample, replace(config, max_shapes=n), 0, 0) for n in numbers]
    return {plan.distinct_shapes: plan.token_ratio for plan in plans}


def step_seconds(hparams: HParams, replicas: int, hardware: Gpus | None) -> float:
    """Returns the expected time of a step with XLA.

    A step has six operations per weight of the matmuls and position of a side: a
    multiplication and an addition in the forward matmul and in two backward matmuls.
    Attention adds a few percent.

    Args:
        hparams: Hyper-parameters without "auto" for precision.
        replicas: Number of devices, each of which has a shard of the positions.
        hardware: GPUs of this machine; None for a CPU.
    """
    operations = 6 * matmul_weights(hparams) * hparams.tokens_per_batch
    if hardware is None:
        return operations / (_CPU_CORE * usable_cores())
    peak = _PEAKS[max(key for key in _PEAKS if key <= hardware.capability)]
    if hparams.precision == "float32":
        peak /= 2  # TF32.
    return operations / (UTILIZATION * peak * replicas)


def compile_seconds(hparams: HParams, hardware: Gpus | None) -> float:
    """Returns the expected time to compile one shape, which grows with the layers.

    On an H200, XLA took 40 s for tiny (4 layers) and 60 s for big (12), including the
    automatic choice of kernels. On two cores of an AMD EPYC (Zen 5), it took 3 s of
    processor time for tiny and 7 s for base (12 layers).
    """
    layers = hparams.num_layers + hparams.decoder_layers
    return 30 + 2.5 * layers if hardware else 1 + 0.5 * layers


def resolve(
    hparams: HParams,
    ratios: Mapping[int, float],
    steps: int,
    replicas: int,
    hardware: Gpus | None,
) -> tuple[HParams, str]:
    """Replaces "auto" in `xla` and `max_shapes` with values for the corpus.

    XLA is chosen if the time that it saves in the steps left exceeds the time of
    compilation and of additional padding.

    Args:
        hparams: Hyper-parameters that `devices.resolve_auto` returned.
        ratios: Result of `token_ratios`.
        steps: Number of steps left.
        replicas: Number of devices of all processes.
        hardware: GPUs of this machine; None for a CPU.

    Returns:
        The hyper-parameters, and a log line that explains them.
    """
    step = step_seconds(hparams, replicas, hardware)
    compilation = compile_seconds(hparams, hardware)
    seconds = training_seconds(steps, step, compilation, ratios)
    shapes = min(seconds, key=seconds.__getitem__)
    xla = seconds[shapes] < GAIN * steps * step if hparams.xla == AUTO else hparams.xla
    in_buckets = xla and hparams.batching == "buckets"
    resolved = hparams.resolve_auto(
        xla=xla, max_shapes=shapes if in_buckets else CPU_DEFAULTS["max_shapes"]
    )
    return resolved, (
        f"{format_settings(resolved, hparams.auto_fields())}: chosen for "
        f"{format_count(steps, 'step')}, of about {step:.2g} s each, and "
        f"{compilation:.0f} s to compile a shape"
    )


def announcement(hparams: HParams, shapes: int, hardware: Gpus | None) -> str:
    """Returns a log line with the expected time of compilation for a plan's shapes."""
    seconds = shapes * compile_seconds(hparams, hardware)
    expected = f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
    return (
        f"XLA compiles {format_count(shapes, 'shape')} of micro-batches on first "
        f"use, about {expected}: the first steps are slow"
    )
