"""Validations during a training: loss, translations, guard, best weights."""

from t2t_repro.batches import pipeline
from t2t_repro.batches.batching import BatchingConfig
from t2t_repro.data.prepared_data import PreparedData
from t2t_repro.evaluation.bleu import select_tokenizer
from t2t_repro.evaluation.split_scores import (
    AnyScore,
    chrf,
    evaluate,
    select_score_class,
)
from t2t_repro.models.transformer import Transformer
from t2t_repro.models.variables import named_variables
from t2t_repro.runs.checkpoint_rotation import (
    BLEU,
    CHRF,
    LOSS,
    keep_best,
    rank_checkpoints,
)
from t2t_repro.system.errors import UserError
from t2t_repro.texts.translation import Translation
from t2t_repro.training.monitor import Monitor
from t2t_repro.training.progress import Validation, is_eligible, stops_early
from t2t_repro.training.run import Run
from t2t_repro.training.selection import VALIDATION_SENTENCES, select_evenly
from t2t_repro.training.validation import ValidationLoss
from t2t_repro.training.validation_sets import (
    GUARD,
    VALIDATION,
    keep_translations,
    log_scores,
)
from t2t_repro.training.workers import Workers
from t2t_repro.translation.build import build_translator
from t2t_repro.translation.loading import Loaded
from t2t_repro.translation.options import TranslationOptions


class Validator:
    """Validates the model of a training.

    It computes the loss of the validation split, with different batches on each worker.
    After the warm-up, the chief also scores greedy translations of at most
    `VALIDATION_SENTENCES` pairs of each set, see `select_evenly`, keeps them, and saves
    the best weights. It does not compare them with weights that were validated on other
    pairs. The guard is translated with the model's search: training on short sentences
    can shorten the translations of beam search, but not greedy ones.

    Args:
        run: Settings of the run.
        data: Prepared data, with validation pairs.
        model: Model to validate.
        config: Batching settings.
        workers: Workers that validate at the same time.
        monitor: Monitor that records the results.
        identity: Identifies the validation split and the tokenizer.

    Raises:
        UserError: The validation split is empty.
    """

    def __init__(
        self,
        run: Run,
        data: PreparedData,
        model: Transformer,
        config: BatchingConfig,
        workers: Workers,
        monitor: Monitor,
        identity: str,
    ) -> None:
        assert data.val is not None
        self._run, self._val, self._config = run, data.val, config
        self._workers, self._monitor = workers, monitor
        self._metric = run.hparams.validation_metric
        self._weights = named_variables(model)
        self._loss = ValidationLoss(model, workers)
        loaded = Loaded([model], data.tokenizer, run.hparams, [], [])
        self._translator = build_translator(loaded, TranslationOptions(beam_size=1))
        self._searching = build_translator(loaded, TranslationOptions())
        self._pairs = list(run.problem.pairs("val"))
        self._sample = select_evenly(self._pairs, VALIDATION_SENTENCES)
        if not self._sample:
            raise UserError(
                f"{run.problem.name}: the val split is empty; it needs at least one "
                "pair"
            )
        others = dict(run.validation_sets)
        if run.guard is not None:
            others[GUARD] = run.guard.problem
        self._others = {
            name: select_evenly(list(problem.pairs("val")), VALIDATION_SENTENCES)
            for name, problem in others.items()
        }
        self._key = {"chrf": CHRF, "loss": LOSS}.get(self._metric, BLEU)
        self._identity = self._complete(identity)
        best = rank_checkpoints(run.model_dir.best_dir)
        if any(each.data not in (None, self._identity) for each in best):
            run.log(
                "the validation sentences or the tokenizer of BLEU have changed, so "
                f"{run.model_dir.best_dir} starts over"
            )

    def __call__(self, step: int) -> bool:
        """Validates after a number of steps; returns whether training stops early."""
        number, count = self._workers.number, self._workers.count
        loss = self._loss(pipeline.eval_batches(self._val, self._config, number, count))
        if number > 0:  # Not the chief.
            return False
        run, guard, monitor = self._run, self._run.guard, self._monitor
        tolerance = guard.tolerance if guard else None
        message = f"step {step:,}: validation loss {loss:.4f}"
        value = None
        scores: dict[str, float] = {}
        if not is_warming_up(run, step):
            figure, value = self._score()
            message += f", greedy {figure} {value:.2f} on {self._count()}"
            for name, pairs in self._others.items():
                score, _ = self._evaluate(name, pairs)
                scores[name] = score.value
                message += f", {name} {score.figure} {score.value:.2f}"
        this = Validation(step, loss, value, scores.pop(GUARD, None))
        first = next(iter(monitor.validations()), this)
        eligible = is_eligible(this, first, tolerance)
        best = loss if self._metric == "loss" else value
        if best is not None and eligible:
            most = max(run.hparams.keep_best_checkpoints, int(guard is not None))
            directory, weights = run.model_dir.best_dir, self._weights
            keep_best(directory, most, step, weights, best, self._identity, self._key)
        if scores:
            log_scores(run.model_dir.path, step, scores)
            monitor.scalars(step, {f"val_{name}": scores[name] for name in scores})
        monitor.record_validation(*this)
        run.log(message if eligible else f"{message} (rejected by the guard)")
        reason = stops_early(
            monitor.validations(), self._metric, run.hparams.early_stopping, tolerance
        )
        if reason is not None:
            run.log(reason)
        return reason is not None

    def _complete(self, identity: str) -> str:
        """Returns the identity with all that makes the scores incomparable."""
        references = [target for _, target in self._sample]
        tokenizer = select_tokenizer(self._run.problem.target_lang, references)
        if tokenizer.note and not self._workers.number:
            self._run.log(tokenizer.note)
        if len(self._sample) < len(self._pairs):
            # Earlier versions translated the first pairs.
            identity += " evenly"
        if self._key != BLEU:
            identity += f" {self._metric}"
        if tokenizer.name != "13a":
            # The package of another tokenizer may be installed before a resumption.
            identity += f" {tokenizer.name}"
        return identity

    def _count(self) -> str:
        number, all_pairs = len(self._sample), len(self._pairs)
        shown = f"{number:,} of {all_pairs:,}" if number < all_pairs else f"{number:,}"
        return f"{shown} sentences"

    def _score(self) -> tuple[str, float]:
        """Returns the name and the value of the score of greedy translations."""
        score, translations = self._evaluate(VALIDATION, self._sample)
        if self._metric != "chrf":
            return score.figure, score.value
        texts = [translation.text for translation in translations]
        return "chrF", chrf(texts, [target for _, target in self._sample])

    def _evaluate(
        self, name: str, pairs: list[tuple[str, str]]
    ) -> tuple[AnyScore, list[Translation]]:
        """Scores the translations of a set, and keeps them as a file."""
        target_lang = self._run.problem.target_lang
        translator = self._searching if name == GUARD else self._translator
        score, translations = evaluate(
            translator, pairs, target_lang, show_progress=False
        )
        texts = [translation.text for translation in translations]
        keep_translations(self._run.model_dir.path, name, pairs, texts)
        return score, translations


def score_name(run: Run) -> str:
    """Returns the name of the validation score in logs, in lower case.

    Raises UserError if `validation_metric` does not suit the targets.
    """
    target_lang, metric = run.problem.target_lang, run.hparams.validation_metric
    name = select_score_class(target_lang).figure.lower()
    if metric != "chrf":
        return name
    if name == "f1":
        raise UserError(
            "validation_metric=chrf: trees are scored with F1; use bleu, which stands "
            "for it, or loss"
        )
    return metric


def is_warming_up(run: Run, step: int) -> bool:
    """Returns whether translation after a step would run to the length limit.

    During the warm-up, a model that started from random weights rarely emits EOS.
    """
    return run.origin_record is None and step < run.hparams.warmup_steps
