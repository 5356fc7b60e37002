"""Checks of hyper-parameters that are valid separately but not together."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from t2t_repro.hparams.settings import AUTO
from t2t_repro.system.errors import UserError


def check_together(hparams: Any) -> None:
    """Raises UserError that lists all contradictions of values of an `HParams`."""
    contradictions = [
        *_model_contradictions(hparams),
        *_batch_contradictions(hparams),
        *_run_contradictions(hparams),
    ]
    if contradictions:
        raise UserError(f"hparams: {'; '.join(contradictions)}")


def _model_contradictions(hparams: Any) -> Iterator[str]:
    """Yields contradictions of the fields that determine the model's function."""
    unset = [name for name in ("d_k", "d_v") if getattr(hparams, name) is None]
    if unset and hparams.d_model % hparams.num_heads:
        yield (
            f"d_model={hparams.d_model} is not a multiple of "
            f"num_heads={hparams.num_heads}; change one of them or set "
            f"{' and '.join(unset)}"
        )
    if hparams.max_relative_position and hparams.key_size != hparams.value_size:
        yield (
            f"max_relative_position={hparams.max_relative_position} needs d_k "
            f"and d_v to be equal, not {hparams.key_size} and {hparams.value_size}"
        )
    of_pieces = ("normalization", "split_digits", "whole_symbols")
    for field in (
        dataclasses.fields(hparams) if hparams.tokenizer == "wordpiece" else ()
    ):
        if field.name in of_pieces and getattr(hparams, field.name) != field.default:
            yield f"{field.name} needs tokenizer=sentencepiece"
    if not hparams.share_vocab and hparams.share_embeddings:
        yield (
            "share_vocab=false needs share_embeddings=false; tie_target=true then "
            "shares one matrix for target embedding and softmax"
        )
    if hparams.start_symbol >= hparams.vocab_size:
        yield (
            f"start_symbol={hparams.start_symbol} must be less than "
            f"vocab_size={hparams.vocab_size}"
        )
    has_pairs = hparams.position in ("sinusoid_paper", "sinusoid_halves")
    if has_pairs and hparams.d_model % 2:
        yield (
            f"d_model={hparams.d_model} must be even for position="
            f"{hparams.position}, which pairs each sine with a cosine"
        )


def _batch_contradictions(hparams: Any) -> Iterator[str]:
    """Yields contradictions of the fields that determine the batches."""
    packed = hparams.batching == "packed"
    longest, what = ("packed_length", "row") if packed else ("max_length", "sentence")
    for name in ("tokens_per_batch", "max_tokens_per_device"):
        value = getattr(hparams, name)
        if value != AUTO and 0 < value < hparams.longest_row:
            yield (
                f"{name}={value} is less than {longest}="
                f"{hparams.longest_row}, so a {what} of that length does not fit; "
                f"increase {name} or reduce {longest}"
            )
    if packed and hparams.augments:
        yield (
            "batching=packed cannot be combined with augment_*, which changes the "
            "lengths of sentences; set batching=buckets"
        )
    if packed and not hparams.source_end:
        yield (
            "batching=packed needs source_end=true, because EOS separates "
            "the sentences of a row; set source_end=true or batching=buckets"
        )


def _run_contradictions(hparams: Any) -> Iterator[str]:
    """Yields contradictions of the fields for decoding and checkpoints."""
    if not hparams.decode_length_factor and not hparams.decode_extra_length:
        yield (
            "decode_length_factor and decode_extra_length are both 0, so "
            "every output would be empty; set one of them"
        )
    if hparams.average_last > hparams.keep_checkpoints:
        yield (
            f"average_last={hparams.average_last} exceeds "
            f"keep_checkpoints={hparams.keep_checkpoints}; reduce average_last or "
            "increase keep_checkpoints"
        )
    if hparams.early_stopping and not hparams.eval_steps:
        yield (
            f"early_stopping={hparams.early_stopping} needs validations during the "
            "training; set eval_steps"
        )
    if hparams.early_stopping and not hparams.keep_best_checkpoints:
        yield (
            f"early_stopping={hparams.early_stopping} needs the best checkpoint; set "
            "keep_best_checkpoints to at least 1"
        )
    if hparams.early_stopping and hparams.ema_decay:
        yield (
            f"early_stopping={hparams.early_stopping} averages the checkpoints up to "
            f"the best validation, so ema_decay={hparams.ema_decay} has no effect; set "
            "one of them to 0"
        )
    if not hparams.checkpoint_steps and not hparams.checkpoint_minutes:
        yield (
            "checkpoint_steps and checkpoint_minutes are both 0, so no "
            "checkpoint would be saved; set one of them"
        )
