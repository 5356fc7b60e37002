"""tensor2tensor's named hyper-parameter sets, each as its differences from a parent.

The values are those of tensor2tensor 1.15.7's registry (models/transformer.py and
layers/common_hparams.py:basic_params1); only hyper-parameters that decide what a
translation model computes or how it is trained are listed.
"""

from collections.abc import Mapping
from typing import Any

from t2t_repro.hparams.settings import did_you_mean
from t2t_repro.system.errors import UserError

# transformer_base_v1. An hparams.json that lacks one of these is older than the
# hyper-parameter, and what it stands for was then as it is here.
BASE: Mapping[str, Any] = {
    "hidden_size": 512,
    "filter_size": 2048,
    "num_heads": 8,
    "num_hidden_layers": 6,
    "num_encoder_layers": 0,
    "num_decoder_layers": 0,
    "attention_key_channels": 0,
    "attention_value_channels": 0,
    "layer_preprocess_sequence": "none",
    "layer_postprocess_sequence": "dan",
    "self_attention_type": "dot_product",
    "max_relative_position": 0,
    "pos": "timing",
    "max_length": 256,
    "shared_embedding_and_softmax_weights": True,
    "multiply_embedding_mode": "sqrt_depth",
    "vocab_divisor": 1,
    "use_target_space_embedding": True,
    "layer_prepostprocess_dropout": 0.1,
    "attention_dropout": 0.0,
    "relu_dropout": 0.0,
    "label_smoothing": 0.1,
    "optimizer_adam_beta1": 0.9,
    "optimizer_adam_beta2": 0.98,
    "optimizer_adam_epsilon": 1e-9,
    "learning_rate_schedule": "legacy",
    "learning_rate_decay_scheme": "noam",
    "learning_rate": 0.1,
    "learning_rate_constant": 1.0,
    "learning_rate_warmup_steps": 4000,
    "clip_grad_norm": 0.0,
    "batch_size": 4096,
}

_LATER_RATE = {
    "learning_rate_schedule": "constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size",
    "learning_rate_constant": 2.0,
}
_BIG = {"hidden_size": 1024, "filter_size": 4096, "num_heads": 16}
_RELATIVE = {
    "pos": None,
    "self_attention_type": "dot_product_relative",
    "max_relative_position": 20,
}
_TINY = {
    "num_hidden_layers": 2,
    "hidden_size": 128,
    "filter_size": 512,
    "num_heads": 4,
}
_BROADCAST = {
    "attention_dropout_broadcast_dims": "0,1",
    "relu_dropout_broadcast_dims": "1",
    "layer_prepostprocess_dropout_broadcast_dims": "1",
}
_TPU = {
    "optimizer": "Adafactor",
    "learning_rate_schedule": "rsqrt_decay",
    "learning_rate_warmup_steps": 10_000,
    "max_length": 64,
    "batch_size": 2048,
    **_BROADCAST,
}
_NO_DROPOUT = {
    "label_smoothing": 0.0,
    "layer_prepostprocess_dropout": 0.0,
    "attention_dropout": 0.0,
    "relu_dropout": 0.0,
    "max_length": 0,
}
_PREPEND = {"prepend_mode": "prepend_inputs_masked_attention", "max_length": 0}
_UNTIED = {"shared_embedding_and_softmax_weights": False}

# Name without "transformer_" -> its parent, and what differs from that.
_SETS: Mapping[str, tuple[str | None, Mapping[str, Any]]] = {
    "base_v1": (None, {}),
    "base_v2": (
        "base_v1",
        {
            "layer_preprocess_sequence": "n",
            "layer_postprocess_sequence": "da",
            "attention_dropout": 0.1,
            "relu_dropout": 0.1,
            "learning_rate_warmup_steps": 8000,
            "learning_rate": 0.2,
        },
    ),
    "base_v3": ("base_v2", {"optimizer_adam_beta2": 0.997, **_LATER_RATE}),
    "base": ("base_v3", {}),
    "base_single_gpu": (
        "base",
        {
            "batch_size": 1024,
            "learning_rate_schedule": "constant*linear_warmup*rsqrt_decay",
            "learning_rate_constant": 0.1,
            "learning_rate_warmup_steps": 16_000,
        },
    ),
    "base_multistep8": (
        "base",
        {"optimizer": "multistep_adam", "optimizer_multistep_accumulate_steps": 8},
    ),
    "big": (
        "base",
        {**_BIG, "batch_size": 2048, "layer_prepostprocess_dropout": 0.3},
    ),
    "big_single_gpu": (
        "big",
        {"layer_prepostprocess_dropout": 0.1, "learning_rate_warmup_steps": 16_000},
    ),
    "big_dr1": ("base", _BIG),
    "big_dr2": ("big_dr1", {"layer_prepostprocess_dropout": 0.2}),
    "big_enfr": ("big_dr1", {"filter_size": 8192, **_UNTIED}),
    "big_enfr_tpu": ("big_enfr", {**_TPU, "num_heads": 8}),
    "tiny": ("base", _TINY),
    "test": ("tiny", {"hidden_size": 16, "filter_size": 8, "num_heads": 2}),
    "small": ("tiny", {"hidden_size": 256, "filter_size": 1024}),
    **{f"l{n}": ("base", {"num_hidden_layers": n}) for n in (2, 4, 8, 10)},
    **{f"h{n}": ("base", {"num_heads": n}) for n in (1, 4, 16, 32)},
    **{f"k{n}": ("base", {"attention_key_channels": n}) for n in (128, 256)},
    **{f"ff{n}": ("base", {"filter_size": n}) for n in (1024, 4096)},
    **{f"hs{n}": ("base", {"hidden_size": n}) for n in (256, 1024)},
    "dr0": ("base", {"layer_prepostprocess_dropout": 0.0}),
    "dr2": ("base", {"layer_prepostprocess_dropout": 0.2}),
    "ls0": ("base", {"label_smoothing": 0.0}),
    "ls2": ("base", {"label_smoothing": 0.2}),
    "relative": ("base", _RELATIVE),
    "relative_tiny": ("relative", _TINY),
    "relative_big": ("big", _RELATIVE),
    "parsing_base": (
        "base",
        {
            "attention_dropout": 0.2,
            "layer_prepostprocess_dropout": 0.2,
            "max_length": 512,
            "learning_rate_warmup_steps": 16_000,
            "hidden_size": 1024,
            "learning_rate": 0.05,
            **_UNTIED,
        },
    ),
    "parsing_big": (
        "big",
        {
            "max_length": 512,
            "learning_rate_warmup_steps": 4000,
            "layer_prepostprocess_dropout": 0.1,
            "learning_rate": 0.05,
        },
    ),
    "parsing_ice": ("base_single_gpu", {"batch_size": 4096, **_UNTIED}),
    "clean": ("base_v2", _NO_DROPOUT),
    "clean_big": ("clean", {"hidden_size": 1024, "filter_size": 4096}),
    "prepend": ("base_v2", _PREPEND),
    "prepend_v1": ("base_v1", _PREPEND),
    "prepend_v2": ("base_v2", _PREPEND),
    "tpu": ("base", _TPU),
    "packed_tpu": ("tpu", {}),
    "big_tpu": ("big", _TPU),
    "small_tpu": ("small", _TPU),
    "tiny_tpu": ("tiny", _TPU),
    "tpu_bf16_activation": ("tpu", {"activation_dtype": "bfloat16"}),
    "mlperf_tpu": ("base", {**_BIG, "batch_size": 2048, **_BROADCAST}),
    "fairseq_fp16_activation_big": (
        "big",
        {"activation_dtype": "float16", "batch_size": 3584},
    ),
}
_PREFIX = "transformer_"


def names() -> list[str]:
    """Returns the names of all sets, as tensor2tensor's `--hparams_set` takes them."""
    return [_PREFIX + name for name in _SETS]


def load(name: str) -> dict[str, Any]:
    """Returns a set's values, its parents' included; UserError if it is unknown."""
    if name not in names():
        raise UserError(
            f"--t2t_hparams_set {name}: no such set is known here"
            f"{did_you_mean(name, names())}; the run's hparams.json, given with "
            "--hparams_json, says everything"
        )
    values: dict[str, Any] = {}
    parent: str | None = name.removeprefix(_PREFIX)
    while parent is not None:
        parent, differences = _SETS[parent]
        values = {**differences, **values}
    return {**BASE, **values}
