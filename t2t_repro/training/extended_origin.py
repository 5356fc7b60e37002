"""Start of a training with more pieces than its first model (`--vocab extend`)."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from t2t_repro.models.extension import extend_rows
from t2t_repro.problems.problem import Problem
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.extension import (
    extend_vocabulary,
    read_words,
    select_words,
)
from t2t_repro.training.origin import FLAG, Origin


def extend_origin(
    origin: Origin,
    words_file: str | None,
    count: int | None,
    problem: Problem,
    log: Callable[[str], None],
) -> Origin:
    """Returns the first model of a training with an extended vocabulary.

    Args:
        origin: First model.
        words_file: File with the words that become single pieces; None selects them
            from the training text.
        count: Number of words of the training text.
        problem: Training text.
        log: Function called with a line about the size.

    Raises:
        UserError: The vocabulary cannot be extended, or a file cannot be read.
    """
    if origin.hparams.vocab_divisor > 1:
        raise UserError(
            f"--vocab extend: {FLAG} {origin.path} has "
            f"vocab_divisor={origin.hparams.vocab_divisor}, but only models with "
            "vocab_divisor=1 can be extended; use --vocab keep"
        )
    if words_file:
        words = read_words(Path(words_file))
    else:
        words = select_words(origin.tokenizer, problem.pairs("train"), count or 0)
    extension = extend_vocabulary(origin.tokenizer, words)
    spellings = {"source": extension.source, "target": extension.target}

    def assign(variables: Mapping[str, Any]) -> None:
        for name, variable in variables.items():
            variable.assign(extend_rows(name, origin.read(name), spellings))

    old, new = origin.tokenizer.vocab_size, extension.tokenizer.vocab_size
    log(f"vocabulary extended by {len(words):,} words: {old:,} to {new:,} subwords")
    return replace(origin, tokenizer=extension.tokenizer, assign=assign)
