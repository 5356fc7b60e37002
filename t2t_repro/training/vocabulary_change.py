"""Start of a training with another vocabulary than its first model's (`--vocab`)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from t2t_repro.hparams import HParams
from t2t_repro.models.vocabulary_rows import spell_rows
from t2t_repro.problems.problem import Problem
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.extension import (
    extend_vocabulary,
    read_words,
    select_words,
)
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.replacement import check_kind, spell_vocabulary
from t2t_repro.tokenizers.tokenizer import Tokenizer
from t2t_repro.tokenizers.word_piece_tokenizer import WordPieceTokenizer
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
    _check_rows(origin, "extend")
    if words_file:
        words = read_words(Path(words_file))
    else:
        words = select_words(origin.tokenizer, problem.pairs("train"), count or 0)
    extension = extend_vocabulary(origin.tokenizer, words)
    sides = origin.tokenizer, origin.tokenizer.target
    new = extension.source, extension.target
    spellings = [
        [*([number] for number in range(side.vocab_size)), *spelled]
        for side, spelled in zip(sides, new, strict=True)
    ]
    old, size = origin.tokenizer.vocab_size, extension.tokenizer.vocab_size
    log(f"vocabulary extended by {len(words):,} words: {old:,} to {size:,} subwords")
    return _change(origin, extension.tokenizer, *spellings)


def check_replaceable(
    origin: Origin, hparams: HParams, vocab_file: Path | None
) -> Origin:
    """Returns the first model of a training that gets its own vocabulary.

    Args:
        origin: First model.
        hparams: Hyper-parameters of the training.
        vocab_file: File of the new vocabulary; None: it is built from text.

    Raises:
        UserError: The weights depend on the ids of the old vocabulary, or the new one
            has another kind.
    """
    are_word_pieces = hparams.tokenizer == "wordpiece"
    if vocab_file is not None:
        new = load_tokenizer(vocab_file)
        are_word_pieces = isinstance(new.source, WordPieceTokenizer)
    check_kind(origin.tokenizer, are_word_pieces)
    _check_rows(origin, "replace")
    symbol = origin.hparams.start_symbol
    if symbol:
        raise UserError(
            f"--vocab replace: {FLAG} {origin.path} begins its outputs with token "
            f"{symbol} of its own vocabulary; use --vocab extend"
        )
    return replace(origin, replaces_vocabulary=True)


def replace_vocabulary(
    origin: Origin, tokenizer: Tokenizer, log: Callable[[str], None]
) -> Origin:
    """Returns the first model of a training with the vocabulary of the training.

    Args:
        origin: First model, which `check_replaceable` returned.
        tokenizer: Tokenizer of the new vocabulary.
        log: Function called with a line for each vocabulary: how many subwords of it
            the old one contains.

    Raises:
        UserError: The vocabularies are of different kinds, or the model has one
            embedding for both sides and the new vocabularies are two.
    """
    is_shared = tokenizer.target_vocab_size is None
    if origin.hparams.share_embeddings and not is_shared:
        raise UserError(
            f"--vocab replace: {FLAG} {origin.path} has share_embeddings=true, which "
            "needs a vocabulary that both sides share"
        )
    sides = spell_vocabulary(origin.tokenizer, tokenizer)
    names = ["" if is_shared else "source ", "target "]
    for name, side in zip(names, sides[: 1 if is_shared else 2], strict=False):
        log(
            f"{name}vocabulary replaced: {side.kept:,} of {len(side.spellings):,} "
            "subwords keep their weights"
        )
    return _change(origin, tokenizer, *(side.spellings for side in sides))


def _check_rows(origin: Origin, choice: str) -> None:
    """Raises UserError if the tables have rows without a token."""
    if origin.hparams.vocab_divisor > 1:
        raise UserError(
            f"--vocab {choice}: {FLAG} {origin.path} has "
            f"vocab_divisor={origin.hparams.vocab_divisor}, but only vocabularies of "
            "models with vocab_divisor=1 can change; use --vocab keep"
        )


def _change(
    origin: Origin,
    tokenizer: Tokenizer,
    source: Sequence[Sequence[int]],
    target: Sequence[Sequence[int]],
) -> Origin:
    """Returns a model with another vocabulary.

    Args:
        origin: Model.
        tokenizer: Tokenizer of the new vocabulary.
        source: For each new source id, the old ids that spell it.
        target: The same for the target.
    """
    spellings = {"source": source, "target": target}

    def assign(variables: Mapping[str, Any]) -> None:
        for name, variable in variables.items():
            variable.assign(spell_rows(name, origin.read(name), spellings))

    return replace(origin, tokenizer=tokenizer, assign=assign)
