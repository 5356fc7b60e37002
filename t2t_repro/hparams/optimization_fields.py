"""Hyper-parameters of the regularization and the optimizer."""

from __future__ import annotations

import dataclasses
import functools

from t2t_repro.hparams.model_fields import ModelFields
from t2t_repro.hparams.settings import setting

_PAPER_ADAM = "paper section 5.3"
_PAPER_BASE = "paper table 3, base"
_T2T = "tensor2tensor basic_params1"
_OWN = "own choice"

_fraction = functools.partial(setting, below=1)
_augmentation = functools.partial(setting, 0.0, source=_OWN, maximum=1)


@dataclasses.dataclass(frozen=True)
class OptimizationFields(ModelFields):
    """Fields of `HParams` that determine the loss, the updates and the noise."""

    dropout: float = _fraction(
        0.1,
        "Probability of dropping a sub-layer's output or an embedding (P_drop).",
        _PAPER_BASE,
    )
    attention_dropout: float = _fraction(
        0.0,
        "Probability of dropping an attention weight.",
        "tensor2tensor transformer_base_v1",
    )
    ffn_dropout: float = _fraction(
        0.0,
        "Probability of dropping a feed-forward inner unit (relu_dropout).",
        "tensor2tensor transformer_base_v1",
    )
    label_smoothing_form: str = setting(
        "t2t",
        "Form of label smoothing. t2t: spread over all incorrect tokens, minimum loss "
        "0; marian: spread over all tokens, loss is a mean of cross entropies.",
        "tensor2tensor common_layers.py:smoothing_cross_entropy; Marian "
        "--label-smoothing",
        choices=("t2t", "marian"),
    )
    label_smoothing: float = _fraction(
        0.1,
        "Probability taken from the correct token and spread over the vocabulary.",
        "paper section 5.4",
    )

    optimizer: str = setting(
        "adam",
        "Optimizer. adafactor: factored second moments without momentum; the learning "
        "rate is relative to the root mean square of each weight matrix.",
        "paper section 5.3; Shazeer and Stern 2018, arXiv:1804.04235",
        choices=("adam", "adafactor"),
    )
    adam_beta1: float = _fraction(
        0.9, "Adam: decay rate of the mean gradient.", _PAPER_ADAM
    )
    adam_beta2: float = _fraction(
        0.98, "Adam: decay rate of the mean squared gradient.", _PAPER_ADAM
    )
    adam_epsilon: float = setting(
        1e-9,
        "Adam: constant added to the root of the mean squared gradient.",
        _PAPER_ADAM,
    )
    learning_rate_schedule: str = setting(
        "paper",
        "Learning rate of step n, from 1. paper: rate(n); t2t: rate(n - 1), so the "
        "first is 0; rsqrt_decay: constant during warm-up; marian: min(n / warmup, "
        "sqrt(warmup / n)); constant: 1 after warm-up; inverse_sqrt: constant up to "
        "step `decay_start_step`, then it falls with the inverse square root.",
        "paper equation 3; tensor2tensor learning_rate.py:learning_rate_schedule; "
        "Marian --lr-warmup with an equal --lr-decay-inv-sqrt",
        choices=(
            *("paper", "t2t", "rsqrt_decay", "marian"),
            *("constant", "inverse_sqrt"),
        ),
    )
    decay_start_step: int = setting(
        16_000,
        "Step from which the rate of learning_rate_schedule=inverse_sqrt falls.",
        "Marian --lr-decay-inv-sqrt, in its example of a Transformer",
        minimum=1,
    )
    learning_rate_scale: float = setting(
        1.0, "Factor of the scheduled learning rate.", "paper equation 3"
    )
    warmup_steps: int = setting(
        4000, "Steps of learning rate warm-up.", _PAPER_ADAM, minimum=1
    )
    clip_norm: float = setting(
        0.0, "Maximum global norm of the gradient; 0: no clipping.", _T2T
    )

    freeze: str | None = setting(
        None,
        "Names of weights that training does not change: patterns separated by spaces, "
        "such as encoder/*; null: none.",
        "OpenNMT-tf freeze_layers",
    )

    ema_decay: float = _fraction(
        0.0,
        "Decay rate per step of a moving average of the weights, which replaces the "
        "mean of the last checkpoints at the end; 0: no moving average.",
        "Marian --exponential-smoothing",
    )

    augment_upper_case: float = _augmentation(
        doc="Probability that a source sentence is trained in upper case."
    )
    augment_title_case: float = _augmentation(
        doc="Probability that each word of a source sentence begins with a capital."
    )
    augment_no_end_mark: float = _augmentation(
        doc="Probability that a source sentence loses its final punctuation."
    )
    augment_typos: float = _augmentation(
        doc="Probability of a typo in each source word: two adjacent characters are "
        "swapped, one is omitted or one is doubled."
    )
