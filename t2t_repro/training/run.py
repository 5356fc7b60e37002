"""Settings of one run of the `train` command."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import tensorflow as tf

from t2t_repro.hparams import HParams
from t2t_repro.problems.corpora import Corpus
from t2t_repro.problems.problem import Problem
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.training.guard import Guard
from t2t_repro.training.origin import Origin


@dataclass(frozen=True)
class Run:
    """Settings of one training run.

    Attributes:
        hparams: Hyper-parameters.
        problem: Source of the sentence pairs; with several corpora, the last one.
        data_dir: Folder of the data.
        model_dir: Model directory.
        strategy: Distribution strategy.
        stream: Console for progress lines.
        vocab_file: Vocabulary file; None uses the model's, or builds one from the data.
        accepted: Names of settings that may differ from those of the training run to
            resume; see `check_accepted`.
        profiled: First and last step to trace; (0, 0) traces none.
        keeps_programs: Whether XLA's programs are kept for later runs; see
            `compile_cache`.
        deterministic: Whether 1, 2, 4 and 8 devices compute the same bits.
        other_model: Directory of another model whose hyper-parameters this run uses,
            but not its weights; None if the hyper-parameters are from elsewhere.
        origin: Model with the weights of step 0; None for random weights, or if the
            training resumes from its own checkpoints.
        guard: Second validation set, whose score must not fall; None for no guard.
        origin_record: `Origin.record` of the model from which the training started,
            also if it resumes; None for random weights.
        corpora: Training corpora if there are several, otherwise empty.
        shard_dir: Folder for the vocabulary and the encoded shards; None for the
            folders of the data.
        validation_sets: Further validation sets by name, which are only logged.
    """

    hparams: HParams
    problem: Problem
    data_dir: Path
    model_dir: ModelDir
    strategy: tf.distribute.Strategy
    stream: TextIO
    vocab_file: Path | None = None
    accepted: frozenset[str] = frozenset()
    profiled: tuple[int, int] = (0, 0)
    keeps_programs: bool = False
    deterministic: bool = False
    other_model: Path | None = None
    origin: Origin | None = None
    guard: Guard | None = None
    origin_record: dict[str, str] | None = None
    corpora: tuple[Corpus, ...] = ()
    shard_dir: Path | None = None
    validation_sets: Mapping[str, Problem] = field(default_factory=dict)

    def log(self, line: str) -> None:
        """Prints a line and flushes the stream."""
        print(line, file=self.stream, flush=True)
