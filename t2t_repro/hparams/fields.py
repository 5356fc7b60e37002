"""Hyper-parameters of training and decoding: names, defaults, limits and meaning.

The defaults are the paper's base model for English-German.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import textwrap
from collections.abc import Collection
from typing import Any, ClassVar, Literal

import yaml

from t2t_repro.hparams.consistency import check_together
from t2t_repro.hparams.optimization_fields import OptimizationFields
from t2t_repro.hparams.settings import AUTO, get_rule, setting, validate
from t2t_repro.system.atomic_file import write_text_atomically
from t2t_repro.system.limits import MOST_OF_SEARCH

_PAPER_BATCH = "paper section 5.1"
_PAPER_DECODING = "paper section 6.1"
_T2T = "tensor2tensor basic_params1"
_OWN = "own choice"

_free_setting = functools.partial(setting, changes="nothing")

MOST_ALPHA = 10.0
"""Maximum of `alpha`: larger exponents overflow float32 for long outputs."""


@dataclasses.dataclass(frozen=True)
class HParams(OptimizationFields):
    """Hyper-parameters of the data, the model, training and decoding.

    Each field's rule contains its meaning, unit and source; `to_yaml` writes them as
    comments.

    Raises:
        UserError: If a value has the wrong type, is out of range or contradicts
            another one.
    """

    batching: str = setting(
        "buckets",
        "Composition of batches. buckets: at most `max_shapes` static shapes; sorted: "
        "more shapes, less padding; packed: one shape, several pairs in each row.",
        "paper section 5.1 ('approximate sequence length')",
        choices=("buckets", "sorted", "packed"),
    )
    packed_length: int = setting(
        256,
        "Tokens per side of a row if batching is packed; longer sentences are skipped.",
        "tensor2tensor problem.py:packed_length, translate_ende_wmt32k_packed",
        minimum=2,
    )
    tokens_per_batch: int = setting(
        25_000,
        "Positions per side of a batch over all devices, padding included.",
        _PAPER_BATCH,
        minimum=1,
    )
    max_length: int = setting(
        256,
        "Maximum length of a training sentence in tokens, EOS included.",
        _T2T,
        minimum=2,
    )
    max_shapes: int | Literal["auto"] = setting(
        AUTO,
        "Maximum number of static shapes of batching=buckets. auto: with XLA, which "
        "compiles each shape, the number that takes the least time; otherwise 48.",
        _OWN,
        minimum=1,
        plain=48,
    )
    max_tokens_per_device: int | Literal["auto"] = setting(
        AUTO,
        "Maximum positions per side of a micro-batch; gradients are accumulated over "
        "the micro-batches of a batch. 0: no limit; auto: the largest that fits the "
        "GPU memory and keeps all devices busy, 4,096 on a CPU.",
        "4,096: tensor2tensor transformer_base_v1 batch_size",
        plain=4096,
    )
    rows_multiple: int | Literal["auto"] = setting(
        AUTO,
        "Divisor of the number of sentences in a micro-batch. auto: 8 on a GPU, to "
        "use its matrix units; 1 on a CPU.",
        _OWN,
        minimum=1,
        plain=1,
    )
    precision: str = setting(
        AUTO,
        "Precision of matmuls and activations in training; weights, softmax, layer "
        "norm and loss are always float32. auto: bfloat16 on a GPU that supports it, "
        "otherwise float32.",
        "Micikevicius et al. 2018, arXiv:1710.03740",
        choices=("float32", "bfloat16", "float16"),
        plain="float32",
    )
    xla: bool | Literal["auto"] = setting(
        AUTO,
        "Compile loss and gradient with XLA, once per shape. auto: true on a GPU that "
        "supports bfloat16, if the steps left save more time than compilation takes.",
        _OWN,
        plain=False,
    )
    train_steps: int = _free_setting(
        100_000, "Number of training steps.", "paper section 5.2", minimum=1
    )
    checkpoint_steps: int = _free_setting(
        0, "Steps between checkpoints; 0: only by minutes.", _OWN
    )
    checkpoint_minutes: float = _free_setting(
        10.0, "Minutes between checkpoints; 0: only by steps.", "paper section 6.1"
    )
    keep_checkpoints: int = _free_setting(
        20, "Number of newest checkpoints to keep.", "paper section 6.1", minimum=1
    )
    keep_every_hours: float = _free_setting(
        0.0, "Hours between older checkpoints that are kept permanently; 0: none.", _OWN
    )
    keep_best_checkpoints: int = _free_setting(
        1,
        "Number of checkpoints with the best validation BLEU to keep, besides the "
        "newest; 0: none.",
        _OWN,
    )
    average_last: int = _free_setting(
        5,
        "Number of newest checkpoints averaged at the end.",
        "paper section 6.1",
        minimum=1,
    )
    eval_steps: int = _free_setting(
        5000, "Steps between validations; 0: only at the end.", _OWN
    )
    epochs: float = _free_setting(
        0.0,
        "Epochs to train, instead of train_steps; 0: train_steps steps. An epoch of "
        "several corpora has as many steps as all of their batches.",
        _OWN,
    )
    max_hours: float = _free_setting(
        0.0,
        "Hours of training, over all resumed runs, after which it ends before its last "
        "step; 0: no limit.",
        _OWN,
    )
    early_stopping: int = _free_setting(
        0,
        "Number of validations without improvement after which training ends; the "
        "checkpoints up to the best validation are averaged. 0: no early stopping.",
        "Marian --early-stopping",
    )
    validation_metric: str = _free_setting(
        "bleu",
        "Value of a validation that selects the best checkpoints and stops early. "
        "bleu: greedy translations, F1 for trees and chrF for languages that BLEU "
        "lacks a tokenizer for; chrf: greedy translations; loss: validation loss.",
        "Marian --valid-metrics",
        choices=("bleu", "chrf", "loss"),
    )

    beam_size: int = _free_setting(
        4,
        "Number of hypotheses in beam search.",
        _PAPER_DECODING,
        minimum=1,
        maximum=MOST_OF_SEARCH,
    )
    alpha: float = _free_setting(
        0.6, "Exponent of the length penalty.", _PAPER_DECODING, maximum=MOST_ALPHA
    )
    decode_extra_length: int = _free_setting(
        50,
        "Tokens added to the input length to get the maximum output length.",
        _PAPER_DECODING,
        maximum=MOST_OF_SEARCH,
    )
    decode_length_factor: float = _free_setting(
        1.0,
        "Factor of the input length in the maximum output length; 0: independent of "
        "the input.",
        "1: tensor2tensor; 3: Marian --max-length-factor; 0: Transformers max_length",
        maximum=1000,
    )
    search: str = _free_setting(
        "t2t",
        "Beam search of tensor2tensor (t2t), Marian, Transformers or OpenNMT-tf.",
        "Marian beam_search.cpp; Transformers generation/utils.py; OpenNMT-tf "
        "utils/decoding.py",
        choices=("t2t", "marian", "transformers", "opennmt"),
    )
    word_penalty: float = _free_setting(
        0.0,
        "Subtracted from the log probability of each token.",
        "Marian --word-penalty",
        minimum=None,
    )
    allow_unknown: bool = _free_setting(
        True, "Allow <unk> in outputs.", "Marian --allow-unk"
    )
    seed: int = setting(1, "Seed of all random numbers.", _OWN)

    # Names in tensor2tensor, fairseq, OpenNMT and Transformers.
    other_names: ClassVar[dict[str, str]] = {
        "batch_size": "tokens_per_batch",
        "max_tokens": "tokens_per_batch",
        "hidden_size": "d_model",
        "filter_size": "d_ff",
        "num_hidden_layers": "num_layers",
        "relu_dropout": "ffn_dropout",
        "layer_prepostprocess_dropout": "dropout",
        "learning_rate": "learning_rate_scale",
        "learning_rate_constant": "learning_rate_scale",
        "length_penalty": "alpha",
        "exponential_smoothing": "ema_decay",
        "moving_average_decay": "ema_decay",
        "max_steps": "train_steps",
        "save_steps": "checkpoint_steps",
    }

    def __post_init__(self) -> None:
        """Validates each field by its rule, then combinations of fields."""
        for name, value in validate(HParams, vars(self), "hparams").items():
            object.__setattr__(self, name, value)
        check_together(self)

    @property
    def augments(self) -> bool:
        """Whether source sentences are changed in training."""
        names = (name for name in vars(self) if name.startswith("augment_"))
        return any(getattr(self, name) for name in names)

    @property
    def longest_row(self) -> int:
        """Maximum positions per side of a row of a micro-batch."""
        return self.packed_length if self.batching == "packed" else self.max_length

    @property
    def tokens_per_microbatch(self) -> int:
        """Maximum positions per side of a micro-batch.

        It is `tokens_per_batch` divided by the smallest number of micro-batches that
        `max_tokens_per_device` allows. If the quotient is less than `longest_row`,
        that limit is used instead, but at most `tokens_per_batch`.
        """
        whole, bound = self.tokens_per_batch, self.resolve_auto().max_tokens_per_device
        assert isinstance(bound, int)
        most = min(bound or whole, whole)
        equal = whole // -(-whole // most)
        return equal if equal >= self.longest_row else most

    def resolve_auto(self, **chosen: Any) -> HParams:
        """Returns this set with each "auto" replaced by `chosen` or the CPU default."""
        autos = self.auto_fields()
        return self.replace(**{name: chosen.get(name, autos[name]) for name in autos})

    def auto_fields(self) -> dict[str, Any]:
        """Returns the CPU default of each field that is "auto"."""
        return {n: p for n, p in CPU_DEFAULTS.items() if getattr(self, n) == AUTO}

    def replace(self, **changes: Any) -> HParams:
        """Returns a copy with changed values; raises UserError for an invalid one."""
        return dataclasses.replace(self, **validate(HParams, changes, "hparams"))

    def to_dict(self) -> dict[str, Any]:
        """Returns all values by name, in the order of declaration."""
        return dataclasses.asdict(self)

    def to_yaml(self, omitted: Collection[str] = ()) -> str:
        """Returns all values as YAML, with meaning and source as comments.

        The fields that `omitted` names get their defaults when the text is read.
        """
        lines = []
        for field in dataclasses.fields(self):
            if field.name in omitted:
                continue
            rule = get_rule(field)
            comment = textwrap.wrap(f"{rule.doc} ({rule.source})", 80)
            lines += [f"# {line}" for line in comment]
            lines.append(yaml.safe_dump({field.name: getattr(self, field.name)}))
        return "\n".join(lines)

    def save(self, path: str | os.PathLike[str], omitted: Collection[str] = ()) -> None:
        """Writes `to_yaml` to a file atomically; raises UserError on failure."""
        write_text_atomically(path, self.to_yaml(omitted))


CPU_DEFAULTS = {
    field.name: get_rule(field).plain
    for field in dataclasses.fields(HParams)
    if get_rule(field).plain is not None
}
"""CPU default of each field that may be "auto"; used by sets older than "auto"."""


def fields_that_change(what: str) -> frozenset[str]:
    """Returns the names of the hyper-parameters whose `Rule.changes` is `what`."""
    fields = dataclasses.fields(HParams)
    return frozenset(f.name for f in fields if get_rule(f).changes == what)
