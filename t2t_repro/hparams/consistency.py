"""Checks of hyper-parameters that are valid separately but not together."""

from typing import Any

from t2t_repro.hparams.settings import AUTO
from t2t_repro.system.errors import UserError


def check_together(hparams: Any) -> None:
    """Raises UserError if two values of an `HParams` contradict each other."""
    for name in ("d_k", "d_v"):
        if getattr(hparams, name) is None and hparams.d_model % hparams.num_heads:
            raise UserError(
                f"hparams: d_model={hparams.d_model} is not a multiple of "
                f"num_heads={hparams.num_heads}; change one of them or set {name}"
            )
    if hparams.max_relative_position and hparams.key_size != hparams.value_size:
        raise UserError(
            f"hparams: max_relative_position={hparams.max_relative_position} needs d_k "
            f"and d_v to be equal, not {hparams.key_size} and {hparams.value_size}"
        )
    if hparams.start_symbol >= hparams.vocab_size:
        raise UserError(
            f"hparams: start_symbol={hparams.start_symbol} must be less than "
            f"vocab_size={hparams.vocab_size}"
        )
    has_pairs = hparams.position in ("sinusoid_paper", "sinusoid_halves")
    if has_pairs and hparams.d_model % 2:
        raise UserError(
            f"hparams: d_model={hparams.d_model} must be even for position="
            f"{hparams.position}, which pairs each sine with a cosine"
        )
    packed = hparams.batching == "packed"
    longest, what = ("packed_length", "row") if packed else ("max_length", "sentence")
    for name in ("tokens_per_batch", "max_tokens_per_device"):
        value = getattr(hparams, name)
        if value != AUTO and 0 < value < hparams.longest_row:
            raise UserError(
                f"hparams: {name}={value} is less than {longest}="
                f"{hparams.longest_row}, so a {what} of that length does not fit; "
                f"increase {name} or reduce {longest}"
            )
    if packed and not hparams.source_end:
        raise UserError(
            "hparams: batching=packed needs source_end=true, because EOS separates "
            "the sentences of a row; set source_end=true or batching=buckets"
        )
    if not hparams.decode_length_factor and not hparams.decode_extra_length:
        raise UserError(
            "hparams: decode_length_factor and decode_extra_length are both 0, so "
            "every output would be empty; set one of them"
        )
    if hparams.average_last > hparams.keep_checkpoints:
        raise UserError(
            f"hparams: average_last={hparams.average_last} exceeds "
            f"keep_checkpoints={hparams.keep_checkpoints}; reduce average_last or "
            "increase keep_checkpoints"
        )
    if not hparams.checkpoint_steps and not hparams.checkpoint_minutes:
        raise UserError(
            "hparams: checkpoint_steps and checkpoint_minutes are both 0, so no "
            "checkpoint would be saved; set one of them"
        )
