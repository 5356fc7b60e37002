"""Training pairs of a run: their batches, line numbers and descriptions."""

from collections.abc import Collection, Iterator
from functools import cached_property

import tensorflow as tf

from t2t_repro.batches import pipeline
from t2t_repro.batches.batching import BatchingConfig, plan_epoch
from t2t_repro.batches.epoch_plan import EpochPlan
from t2t_repro.batches.mixture import Mixture
from t2t_repro.data.augmentation import Augmentation
from t2t_repro.data.prepared_data import PreparedData
from t2t_repro.data.skipped_pairs import (
    SKIPPED_PAIRS_FILE,
    SkippedPair,
    find_long_pairs,
    line_numbers,
    read_skipped_pairs,
)
from t2t_repro.system.atomic_file import write_text_atomically
from t2t_repro.system.errors import format_count
from t2t_repro.training import announcements
from t2t_repro.training.run import Run


class TrainingPairs:
    """Training pairs of one or several corpora, in the order of the steps.

    Args:
        run: Settings of the run.
        data: Prepared data.
        config: Batching settings.

    Attributes:
        names: Names of the corpora; ("",) if there is only one.
        mixture: Order of the corpora.
    """

    def __init__(self, run: Run, data: PreparedData, config: BatchingConfig) -> None:
        self._data, self._config, self._hparams = data, config, run.hparams
        self.names = tuple(corpus.name for corpus in run.corpora) or ("",)
        weights = tuple(corpus.weight for corpus in run.corpora) or (1,)
        self.mixture = Mixture(data.sizes, weights)
        self._change: pipeline.Change | None = None
        if run.hparams.augments:
            self._change = Augmentation(run.hparams, data.tokenizer).change

    def batches(self, step: int, own: pipeline.OwnParts) -> tf.data.Dataset:
        """Returns the batches from a step on; see `pipeline.batches`."""
        return pipeline.batches(
            self._data.train,
            self._config,
            self._hparams.seed,
            step,
            own,
            self.mixture,
            self._change,
        )

    @cached_property
    def _plans(self) -> list[EpochPlan]:
        """Plan of the first epoch of each corpus."""
        lengths, seed = self._data.train.lengths, self._hparams.seed
        ranges = map(self.mixture.pairs, range(len(self.names)))
        return [plan_epoch(lengths[own], self._config, seed, 0) for own in ranges]

    @property
    def steps_per_epoch(self) -> int:
        """Number of batches of all corpora together."""
        return sum(plan.batches for plan in self._plans)

    @property
    def distinct_shapes(self) -> int:
        """Maximum number of shapes of micro-batches."""
        return sum(plan.distinct_shapes for plan in self._plans)

    def describe(self, start: int) -> Iterator[str]:
        """Yields lines about the epochs of the steps after `start`."""
        last = self._hparams.train_steps
        if len(self.names) == 1:
            (plan,) = self._plans
            yield f"an epoch: {plan.summary()}"
            yield from announcements.describe_epochs(last - start, plan.batches)
            return
        for corpus, (name, plan) in enumerate(
            zip(self.names, self._plans, strict=True)
        ):
            done = self.mixture.batches_before(start, corpus)
            steps = self.mixture.batches_before(last, corpus) - done
            yield f"an epoch of {name}: {plan.summary()}"
            yield (
                f"{name}: {format_count(steps, 'step')}, {steps / plan.batches:,.1f} "
                "epochs"
            )

    def find_lines(self, step: int) -> Collection[int | str]:
        """Returns the lines of the pairs in a step's batch, after `step` steps.

        With several corpora, each line number follows the name of the corpus.
        """
        corpus, seed = self.mixture.corpus(step), self._hparams.seed
        train = self._data.train
        pairs = pipeline.pair_numbers(train, self._config, seed, step, self.mixture)
        pairs = pairs - self.mixture.pairs(corpus).start
        not_encoded = read_skipped_pairs(self._data.folders[corpus])
        lines = line_numbers(pairs, not_encoded).tolist()
        if len(self.names) == 1:
            return lines
        return [f"{self.names[corpus]}:{line}" for line in lines]

    def skipped(self) -> Iterator[tuple[str, SkippedPair]]:
        """Yields the skipped pairs of each corpus, with the name of the split."""
        for corpus, (name, folder) in enumerate(
            zip(self.names, self._data.folders, strict=True)
        ):
            lengths = self._data.train.lengths[self.mixture.pairs(corpus)]
            not_encoded = read_skipped_pairs(folder)
            long = find_long_pairs(lengths, self._config.longest_usable, not_encoded)
            split = f"train of {name}" if name else "train"
            for pair in sorted([*not_encoded, *long]):
                yield split, pair


def list_skipped_pairs(run: Run, data: PreparedData, pairs: TrainingPairs) -> None:
    """Writes ``skipped_pairs.tsv`` and logs the number of skipped pairs."""
    skipped = list(pairs.skipped())
    if data.val is not None:
        not_encoded = read_skipped_pairs(data.directory / "val")
        most = pipeline.LONGEST_EVALUATED
        long = find_long_pairs(data.val.lengths, most, not_encoded)
        skipped += [("val", pair) for pair in sorted([*not_encoded, *long])]
    rows = [f"{split}\t{line}\t{reason}" for split, (line, reason) in skipped]
    path = run.model_dir.path / SKIPPED_PAIRS_FILE
    text = "".join(f"{row}\n" for row in ("split\tline\treason", *rows))
    write_text_atomically(path, text)
    if rows:
        run.log(f"skipped {len(rows):,} pairs, listed in {path}")
