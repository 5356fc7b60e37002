"""Settings of a run that depend on the device and the corpus."""

import math
from dataclasses import replace

from t2t_repro.batches.batching import BatchingConfig
from t2t_repro.data.prepared_data import PreparedData
from t2t_repro.hparams import HParams
from t2t_repro.hparams.settings import AUTO
from t2t_repro.models.precision import check_precision
from t2t_repro.models.variables import (
    find_frozen,
    named_variables,
    skip_initialization,
)
from t2t_repro.runs.checkpoints import list_checkpoints
from t2t_repro.runs.model_dir import build_model
from t2t_repro.runs.run_metadata import RunMetadata
from t2t_repro.training import compilation, devices
from t2t_repro.training.run import Run
from t2t_repro.training.training_pairs import TrainingPairs


def resolve_auto(run: Run, provenance: RunMetadata) -> Run:
    """Chooses "auto" settings for the device and compares the run with the model's."""
    hparams, explanations = devices.resolve_auto(
        run.hparams,
        run.model_dir.hparams() if run.model_dir.exists() else None,
        run.accepted,
        run.strategy.num_replicas_in_sync,
        devices.gpus(),
    )
    check_precision(hparams.precision)
    run = replace(run, hparams=hparams)
    run.model_dir.check(run.hparams, provenance, run.accepted)
    for line in explanations:
        run.log(line)
    return run


def count_steps(run: Run, data: PreparedData) -> Run:
    """Replaces `train_steps` by the number of steps in `epochs`, if that is set."""
    if not run.hparams.epochs:
        return run
    pairs = TrainingPairs(run, data, make_batching_config(run.hparams))
    steps = max(1, math.ceil(run.hparams.epochs * pairs.steps_per_epoch))
    return replace(run, hparams=run.hparams.replace(train_steps=steps))


def choose_shapes(run: Run, data: PreparedData) -> Run:
    """Chooses `xla` and `max_shapes` for the corpus if `resolve_auto` did not."""
    hparams = run.hparams
    if AUTO not in (hparams.xla, hparams.max_shapes):
        return run
    config = make_batching_config(hparams)
    is_free = config.kind == "buckets" and hparams.max_shapes == AUTO
    numbers = compilation.SHAPES if is_free else (config.max_shapes,)
    # An imported model has a checkpoint.
    done = [c.step for c in list_checkpoints(run.model_dir.checkpoint_dir)]
    hparams, line = compilation.resolve(
        hparams,
        compilation.token_ratios(data.train.lengths, config, numbers),
        max(0, hparams.train_steps - max(done, default=0)),
        run.strategy.num_replicas_in_sync,
        devices.gpus(),
    )
    run.log(line)
    return replace(run, hparams=hparams)


def make_batching_config(hparams: HParams) -> BatchingConfig:
    """Returns the batch composition, which does not depend on the device."""
    resolved = hparams.resolve_auto()
    rows_multiple, max_shapes = resolved.rows_multiple, resolved.max_shapes
    assert isinstance(rows_multiple, int) and isinstance(max_shapes, int)
    return BatchingConfig(
        tokens_per_batch=hparams.tokens_per_batch,
        kind=hparams.batching,
        max_length=hparams.max_length,
        tokens_per_microbatch=hparams.tokens_per_microbatch,
        max_shapes=max_shapes,
        rows_multiple=rows_multiple,
        packed_length=hparams.packed_length,
    )


def check_frozen_names(run: Run) -> None:
    """Raises UserError if `freeze` does not fit the names of the model.

    Otherwise, the data would be prepared before the first message about it.
    """
    if not run.hparams.freeze:
        return
    size, tokenizer = run.hparams.vocab_size, None
    # The names depend on the number of vocabularies, not on their sizes.
    sizes = size, None if run.hparams.share_vocab else size
    if run.origin is not None and not run.origin.replaces_vocabulary:
        tokenizer = run.origin.tokenizer
    elif run.model_dir.exists():
        tokenizer = run.model_dir.tokenizer()
    elif run.vocab_file is not None:
        return
    if tokenizer is not None:
        sizes = tokenizer.vocab_size, tokenizer.target_vocab_size
    with skip_initialization():
        model = build_model(run.hparams, *sizes)
    find_frozen(named_variables(model), run.hparams.freeze)
