"""The hyper-parameters: what each is called, means, and may be.

The defaults are the paper's base model for English-German.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from typing import Any, Literal

from t2t_repro.hparams.consistency import check_together
from t2t_repro.hparams.model_fields import ModelFields
from t2t_repro.hparams.settings import (
    AUTO,
    as_yaml,
    check_keys,
    checked,
    rule_of,
    setting,
)
from t2t_repro.system.atomic_file import write_text_atomically

_PAPER_BATCH = "paper section 5.1"
_PAPER_ADAM = "paper section 5.3"
_PAPER_BASE = "paper table 3, base"
_PAPER_DECODING = "paper section 6.1"
_T2T = "tensor2tensor basic_params1"
_OWN = "own choice"

_free_setting = functools.partial(setting, changes="nothing")

MOST_ALPHA = 10.0
"""With a larger exponent the length penalty of long outputs leaves float32's range."""

MOST_EXTRA_LENGTH = 100_000
"""Subwords: the hypotheses of a search are as wide as the longest may become."""


@dataclasses.dataclass(frozen=True)
class HParams(ModelFields):
    """Everything that decides what a training run learns, and how it decodes.

    Each field carries its meaning, unit and source, which `to_yaml` writes out. A wrong
    type or a value out of range is a UserError at construction.
    """

    dropout: float = setting(
        0.1,
        "Probability of dropping a sub-layer's output or an embedding (P_drop).",
        _PAPER_BASE,
        minimum=0,
        below=1,
    )
    attention_dropout: float = setting(
        0.0,
        "Probability of dropping an attention weight.",
        "tensor2tensor transformer_base_v1",
        minimum=0,
        below=1,
    )
    ffn_dropout: float = setting(
        0.0,
        "Probability of dropping a feed-forward inner unit (relu_dropout).",
        "tensor2tensor transformer_base_v1",
        minimum=0,
        below=1,
    )
    label_smoothing_form: str = setting(
        "t2t",
        "t2t: the others share it, and the loss of the best is 0; marian: all subwords "
        "do, the right one, too, and the loss is a mean of cross entropies.",
        "tensor2tensor common_layers.py:smoothing_cross_entropy; Marian "
        "--label-smoothing",
        choices=("t2t", "marian"),
    )
    label_smoothing: float = setting(
        0.1,
        "Probability taken from the right label and spread over the others.",
        "paper section 5.4",
        minimum=0,
        below=1,
    )

    adam_beta1: float = setting(
        0.9, "Adam: decay of the mean gradient.", _PAPER_ADAM, minimum=0, below=1
    )
    adam_beta2: float = setting(
        0.98, "Adam: decay of the mean square.", _PAPER_ADAM, minimum=0, below=1
    )
    adam_epsilon: float = setting(
        1e-9, "Adam: added to the root of the mean square.", _PAPER_ADAM, minimum=0
    )
    learning_rate_schedule: str = setting(
        "paper",
        "paper: update n uses rate(n), n from 1; t2t: rate(n - 1), so the first is 0; "
        "rsqrt_decay: no growth; marian: min(n / warmup, sqrt(warmup / n)).",
        "paper equation 3; tensor2tensor learning_rate.py:learning_rate_schedule; "
        "Marian --lr-warmup with as much --lr-decay-inv-sqrt",
        choices=("paper", "t2t", "rsqrt_decay", "marian"),
    )
    learning_rate_scale: float = setting(
        1.0, "Factor on the scheduled learning rate.", "paper equation 3", minimum=0
    )
    warmup_steps: int = setting(
        4000, "Updates over which the rate rises.", _PAPER_ADAM, minimum=1
    )
    clip_norm: float = setting(
        0.0, "Largest global norm of the gradient; 0: no clipping.", _T2T, minimum=0
    )

    batching: str = setting(
        "buckets",
        "buckets: a bounded set of shapes; sorted: as many shapes as pad little.",
        "paper section 5.1 ('approximate sequence length')",
        choices=("buckets", "sorted"),
    )
    tokens_per_batch: int = setting(
        25_000,
        "Positions on each side, padding included, of one update on all devices.",
        _PAPER_BATCH,
        minimum=1,
    )
    max_length: int = setting(
        256, "Longest training sentence, subwords with the end mark.", _T2T, minimum=2
    )
    max_tokens_per_device: int | Literal["auto"] = setting(
        AUTO,
        "Most positions per side that a device takes at once; a larger batch is made "
        "of equal parts that are accumulated; 0: no bound; auto: as many as a GPU's "
        "memory holds, in as many parts as keep all devices busy; 4,096 on a CPU.",
        "4,096: tensor2tensor transformer_base_v1 batch_size",
        minimum=0,
        plain=4096,
    )
    rows_multiple: int | Literal["auto"] = setting(
        AUTO,
        "Sentences of a part are a multiple of this, and parts are full at it; auto: "
        "8 on a GPU, whose matrix units take eights; 1 on a CPU.",
        _OWN,
        minimum=1,
        plain=1,
    )
    precision: str = setting(
        AUTO,
        "Of products and activations in training; weights, softmax, layer norm and "
        "loss are float32 in each; auto: bfloat16 on a GPU that has it, else float32.",
        "Micikevicius et al. 2018, arXiv:1710.03740",
        choices=("float32", "bfloat16", "float16"),
        plain="float32",
    )
    xla: bool | Literal["auto"] = setting(
        AUTO,
        "Compile loss and gradient with XLA, once for every shape; auto: on a GPU "
        "that has bfloat16, for 50,000 updates or more.",
        _OWN,
        plain=False,
    )
    train_steps: int = _free_setting(
        100_000, "Updates in the whole training.", "paper section 5.2", minimum=1
    )
    checkpoint_steps: int = _free_setting(
        0, "Updates between checkpoints; 0: by minutes alone.", _OWN, minimum=0
    )
    checkpoint_minutes: float = _free_setting(
        10.0,
        "Minutes between checkpoints; 0: by steps alone.",
        "paper section 6.1",
        minimum=0,
    )
    keep_checkpoints: int = _free_setting(
        20, "Newest checkpoints kept for averaging.", "paper section 6.1", minimum=1
    )
    keep_every_hours: float = _free_setting(
        0.0,
        "Hours between older checkpoints that are kept for good; 0: none is.",
        _OWN,
        minimum=0,
    )
    keep_best_checkpoints: int = _free_setting(
        1,
        "Checkpoints of the best validation BLEU, kept beside the newest; 0: none.",
        _OWN,
        minimum=0,
    )
    average_last: int = _free_setting(
        5, "Newest checkpoints averaged at the end.", "paper section 6.1", minimum=1
    )
    eval_steps: int = _free_setting(
        5000, "Updates between validations; 0: at the end alone.", _OWN, minimum=0
    )

    beam_size: int = _free_setting(
        4, "Hypotheses kept in beam search.", _PAPER_DECODING, minimum=1
    )
    alpha: float = _free_setting(
        0.6,
        "Exponent of the length penalty.",
        _PAPER_DECODING,
        minimum=0,
        maximum=MOST_ALPHA,
    )
    decode_extra_length: int = _free_setting(
        50,
        "Longest output: this many subwords more than the input.",
        _PAPER_DECODING,
        minimum=0,
        maximum=MOST_EXTRA_LENGTH,
    )
    decode_length_factor: float = _free_setting(
        1.0,
        "The input's length is multiplied by this before; 0: it does not count.",
        "1: tensor2tensor; 3: Marian --max-length-factor; 0: Transformers max_length",
        minimum=0,
        maximum=1000,
    )
    search: str = _free_setting(
        "t2t",
        "Whose beam search: tensor2tensor's, Marian's, Transformers' or OpenNMT-tf's.",
        "Marian beam_search.cpp; Transformers generation/utils.py; OpenNMT-tf "
        "utils/decoding.py",
        choices=("t2t", "marian", "transformers", "opennmt"),
    )
    word_penalty: float = _free_setting(
        0.0, "Taken from log p for each subword.", "Marian --word-penalty"
    )
    allow_unknown: bool = _free_setting(
        True, "Whether an output may have <unk>.", "Marian --allow-unk"
    )
    seed: int = setting(1, "Start of every random sequence.", _OWN, minimum=0)

    def __post_init__(self) -> None:
        """Checks every field by its rule, then the fields against each other."""
        for field in dataclasses.fields(self):
            value = checked(HParams, field.name, getattr(self, field.name), "hparams")
            object.__setattr__(self, field.name, value)
        check_together(self)

    @property
    def tokens_per_part(self) -> int:
        """Most positions per side of one of the parts that make up a batch.

        As few equal parts as `max_tokens_per_device` allows; where these could not
        hold every sentence, parts of just as many.
        """
        whole, bound = self.tokens_per_batch, self.resolve_auto().max_tokens_per_device
        assert isinstance(bound, int)
        most = min(bound or whole, whole)
        equal = whole // -(-whole // most)
        return equal if equal >= self.max_length else most

    def resolve_auto(self, **chosen: Any) -> HParams:
        """Returns this set with each "auto" replaced: as chosen, else as on a CPU."""
        autos = self.auto_fields()
        return self.replace(**{name: chosen.get(name, autos[name]) for name in autos})

    def auto_fields(self) -> dict[str, Any]:
        """Returns which values are "auto", each with what it is on a CPU."""
        return {n: p for n, p in CPU_DEFAULTS.items() if getattr(self, n) == AUTO}

    def replace(self, **changes: Any) -> HParams:
        """Returns this set with values changed; UserError if one is not allowed."""
        check_keys(HParams, changes, "hparams")
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Returns every value by name, in order of declaration."""
        return dataclasses.asdict(self)

    def to_yaml(self) -> str:
        """Returns the whole set as YAML, each value under its meaning and source."""
        return as_yaml(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the whole set to a file, or raises UserError and leaves none."""
        write_text_atomically(path, self.to_yaml())


CPU_DEFAULTS = {
    field.name: rule_of(field).plain
    for field in dataclasses.fields(HParams)
    if rule_of(field).plain is not None
}
"""What may be "auto", with what it is on a CPU and was before there was "auto"."""


def that_change(what: str) -> frozenset[str]:
    """Returns the names of the hyper-parameters whose `Rule.changes` is `what`."""
    fields = dataclasses.fields(HParams)
    return frozenset(f.name for f in fields if rule_of(f).changes == what)
