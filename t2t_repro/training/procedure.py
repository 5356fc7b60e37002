"""The paper's procedure: prepare data, train, average, translate and score."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from t2t_repro.data.prepared_data import (
    PreparedData,
    fingerprint,
    prepare,
    prepare_corpora,
)
from t2t_repro.hparams.fields import CPU_DEFAULTS
from t2t_repro.models.precision import mixed_precision
from t2t_repro.models.transformer import Transformer
from t2t_repro.problems.corpora import JointCorpora
from t2t_repro.runs.model_dir import build_model
from t2t_repro.runs.run_metadata import RunMetadata
from t2t_repro.system.cores import usable_cores
from t2t_repro.system.errors import UserError
from t2t_repro.system.malloc import keep_freed_memory
from t2t_repro.tokenizers.tokenizer import Tokenizer
from t2t_repro.training import announcements, compilation, compile_cache, devices
from t2t_repro.training import strategy as strategies
from t2t_repro.training.corpus_log import CorpusLog
from t2t_repro.training.loop import TrainingLoop, Validate
from t2t_repro.training.monitor import (
    TENSORBOARD,
    Monitor,
    read_validations,
    validation_table,
)
from t2t_repro.training.origin import Origin, check_labels, vocabulary_of
from t2t_repro.training.profiler import Profile
from t2t_repro.training.progress import stops_early
from t2t_repro.training.resolution import (
    check_frozen_names,
    choose_shapes,
    count_steps,
    make_batching_config,
    resolve_auto,
)
from t2t_repro.training.run import Run
from t2t_repro.training.scoring import average_and_score
from t2t_repro.training.training_pairs import TrainingPairs, list_skipped_pairs
from t2t_repro.training.validator import Validator, score_name
from t2t_repro.training.vocabulary_change import replace_vocabulary
from t2t_repro.training.workers import Workers


def train_and_score(run: Run) -> dict[str, Any] | None:
    """Runs or resumes the procedure; completed stages are not repeated.

    Returns:
        The contents of ``result.json``, without a score if the last step is within the
        warm-up; None if training was stopped before its last step.

    Raises:
        UserError: The data, the model directory or a setting is not usable.
    """
    keep_freed_memory()
    run, data, provenance, fingerprints = _settle(run)
    with _lock(run, provenance, data) as run:
        model = _build(run, data, run.hparams.precision)
        loop = TrainingLoop(
            model,
            run.hparams,
            run.strategy,
            run.model_dir.checkpoint_dir,
            strategies.is_chief(run.strategy),
            provenance.data,
            run.deterministic,
        )
        if run.origin is not None and loop.is_chief:
            loop.begin_from(run.origin.assign, run.model_dir.origin_dir)
        loop.validates_start = run.origin_record is not None
        validation_data = f"{fingerprints.get('val')} {data.tokenizer.fingerprint}"
        if not _train(run, data, model, loop, validation_data):
            return None
        if loop.is_chief:
            if run.hparams.precision != "float32":
                # All other commands translate in float32 as well.
                model = _build(run, data, "float32")
            result = average_and_score(run, data, model, fingerprints.get("test"))
        else:
            result = {"problem": run.problem.name, "steps": loop.step}
            run.log("the chief averages the checkpoints and scores the test split")
        loop.workers.wait()
        return result


def _settle(run: Run) -> tuple[Run, PreparedData, RunMetadata, dict[str, str]]:
    """Chooses all settings, checks them and prepares the data.

    Returns:
        The run without automatic settings, its data, the metadata for ``model.json``
        and the fingerprint of each split.
    """
    missing = list(announcements.describe_missing_text(run))
    fingerprints = {"train": _fingerprint_of_training_data(run)}
    provenance = RunMetadata(
        problem=run.problem.name,
        source_lang=run.problem.source_lang,
        target_lang=run.problem.target_lang,
        data_dir=str(run.data_dir.resolve()),
        problem_fingerprint=fingerprints["train"],
        vocabulary_fingerprint="",
        origin=run.origin_record,
    )
    run = resolve_auto(run, provenance)
    check_frozen_names(run)
    # Reading the test split now reports unusable data before days of training.
    held_out = filter(run.problem.has, ("val", "test"))
    fingerprints |= {split: fingerprint(run.problem, split) for split in held_out}
    for line in missing:
        run.log(line)
    vocab_file = run.vocab_file or run.model_dir.find_vocabulary(run.accepted)
    with vocabulary_of(run.origin, vocab_file) as vocab_file:
        data = _prepare(run, vocab_file, fingerprints)
    if run.origin is not None:
        run = replace(run, origin=_fit(run, run.origin, data.tokenizer))
    run = choose_shapes(count_steps(run, data), data)
    provenance = replace(
        provenance,
        vocabulary_fingerprint=data.tokenizer.fingerprint,
        # The vocabulary of several corpora is kept with the model.
        vocabulary_given=vocab_file is not None or bool(run.corpora),
    )
    return count_steps(run, data), data, provenance, fingerprints


def _fit(run: Run, origin: Origin, tokenizer: Tokenizer) -> Origin:
    """Returns the origin with rows for the vocabulary, and checks language labels."""
    if origin.replaces_vocabulary:
        origin = replace_vocabulary(origin, tokenizer, run.log)
    check_labels(run.problem, tokenizer)
    others = list(run.validation_sets.values())
    others += [run.guard.problem] if run.guard is not None else []
    for problem in others:
        check_labels(problem, tokenizer, ["val"])
    return origin


def _prepare(
    run: Run, vocab_file: Path | None, fingerprints: dict[str, str]
) -> PreparedData:
    """Prepares the data of the run; see `prepare`."""
    workers = usable_cores()
    if run.corpora:
        return prepare_corpora(
            run.corpora,
            run.hparams,
            run.log,
            vocab_file,
            fingerprints,
            workers,
            run.shard_dir,
        )
    return prepare(
        run.problem,
        run.hparams,
        run.shard_dir or run.data_dir,
        run.log,
        vocab_file=vocab_file,
        fingerprints=fingerprints,
        workers=workers,
    )


def _fingerprint_of_training_data(run: Run) -> str:
    """Returns the fingerprint of the training data, or the model's if they are gone.

    A training can resume with only the encoded data. Raises UserError if the data
    cannot be read and no training can resume.
    """
    try:
        problem = JointCorpora(run.corpora) if run.corpora else run.problem
        return problem.fingerprint()
    except UserError as error:
        is_new = "data" in run.accepted or not run.model_dir.exists()
        if is_new or run.corpora:
            raise
        before, now = run.model_dir.provenance(), run.problem
        recorded = before.problem, before.source_lang, before.target_lang
        is_same = recorded == (now.name, now.source_lang, now.target_lang)
        if not is_same or before.problem_fingerprint is None:
            raise
        run.log(f"resuming with the encoded data: {error}")
        return before.problem_fingerprint


def _build(run: Run, data: PreparedData, precision: str) -> Transformer:
    with run.strategy.scope(), mixed_precision(precision):
        sizes = data.tokenizer.vocab_size, data.tokenizer.target_vocab_size
        return build_model(run.hparams, *sizes)


@contextmanager
def _lock(run: Run, provenance: RunMetadata, data: PreparedData) -> Iterator[Run]:
    """Locks the model directory and writes its metadata; both only on the chief.

    Yields the run with the hyper-parameters that the chief chose for its device. Other
    workers wait for them.
    """
    workers = Workers(run.strategy)
    if not strategies.is_chief(run.strategy):
        workers.wait()
        hparams = run.model_dir.hparams()
        chosen = {name: getattr(hparams, name) for name in CPU_DEFAULTS}
        run = replace(run, hparams=run.hparams.replace(**chosen))
        run.model_dir.check(run.hparams, provenance, run.accepted)
        yield run
        return
    with run.model_dir.lock(run.log), run.model_dir.restore_on_error():
        run.model_dir.begin(run.hparams, provenance, data.tokenizer, run.accepted)
        workers.wait()
        yield run


def _train(
    run: Run,
    data: PreparedData,
    model: Transformer,
    loop: TrainingLoop,
    validation_data: str,
) -> bool:
    """Trains to the last step; returns False if training was stopped earlier."""
    hparams, log, chief = run.hparams, run.log, loop.is_chief
    config = make_batching_config(hparams)
    log(strategies.describe(run.strategy))
    start = loop.restore(log)
    if loop.workers.any(chief and _is_done(run, loop)):
        log(
            f"reusing the training in {run.model_dir.path}: {start:,} steps are done; "
            "increase --train_steps, or the limit that ended it, to train further"
        )
        return True
    pairs = TrainingPairs(run, data, config)
    frozen = announcements.describe_frozen(loop.weights, hparams.freeze)
    for line in (*pairs.describe(start), *frozen):
        log(line)
    if hparams.xla:
        log(compilation.announcement(hparams, pairs.distinct_shapes, devices.gpus()))
        if run.keeps_programs:
            compile_cache.trace(loop.update)
    if chief:
        list_skipped_pairs(run, data, pairs)
    if start or chief:
        log(announcements.describe_start(run, start, loop.imported_from))
    if start == hparams.train_steps:
        log("all steps are done; increase --train_steps to train further")
    monitor = _make_monitor(run, loop, pairs)
    validate: Validate = _omit_validation
    if data.val is not None:
        validate = Validator(
            run, data, model, config, loop.workers, monitor, validation_data
        )
    own = loop.workers.own_microbatches
    finished = loop.run(
        lambda step: pairs.batches(step, own),
        monitor,
        validate,
        pairs.find_lines,
        Profile(run.model_dir.path / TENSORBOARD, *(run.profiled if chief else ())),
    )
    if not finished:
        log(
            f"stopped at step {loop.step:,} and saved a checkpoint; run the same "
            "command to resume"
        )
    return finished


def _omit_validation(step: int) -> bool:
    """Takes the place of `Validator` without validation text."""
    return False


def _make_monitor(run: Run, loop: TrainingLoop, pairs: TrainingPairs) -> Monitor:
    """Returns the monitor of a training that continues from the loop's step."""
    directory, start = run.model_dir.path if loop.is_chief else None, loop.step
    corpora = None
    if run.corpora:
        corpora = CorpusLog(pairs.names, pairs.mixture, directory, start)
    return Monitor(
        directory,
        run.hparams.train_steps,
        start,
        run.stream,
        loop.unreported,
        figure=score_name(run),
        corpora=corpora,
        steps_per_epoch=pairs.steps_per_epoch,
        guarded=run.guard is not None,
    )


def _is_done(run: Run, loop: TrainingLoop) -> bool:
    """Returns whether the last step and its validation are done."""
    start, hparams = loop.step, run.hparams
    guard = run.guard
    table = validation_table(run.model_dir.path, guarded=guard is not None)
    validations = read_validations(table, start)
    is_validated = any(each.step == start for each in validations)
    is_validated |= not run.problem.has("val")
    ends_early = stops_early(
        validations,
        hparams.validation_metric,
        hparams.early_stopping,
        guard.tolerance if guard else None,
    )
    if start == hparams.train_steps or ends_early or loop.time_limit.left <= 0:
        return is_validated
    return start > hparams.train_steps
