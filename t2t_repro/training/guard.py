"""Guard of a training: a second validation set whose score must not fall.

A training that starts from a general model (`train --init_from`) improves on new text
and may lose on general text. Weights that lose more than a tolerance on the guard are
not eligible; the result of the training are the best eligible weights.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from t2t_repro.evaluation.bleu import select_tokenizer
from t2t_repro.evaluation.metrics import Difference, paired_bootstrap
from t2t_repro.evaluation.split_scores import select_score_class, translate
from t2t_repro.problems.problem import Problem, hash_of_pairs
from t2t_repro.problems.trees import TREES
from t2t_repro.runs.averaging import assign_mean
from t2t_repro.runs.checkpoints import Checkpoint
from t2t_repro.system.errors import UserError
from t2t_repro.training.validation_sets import open_set
from t2t_repro.translation.translator import Translator

FLAG = "--guard"
Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Guard:
    """Validation set that a training must not get worse on.

    Attributes:
        problem: Problem with the validation set.
        tolerance: Loss of BLEU that is accepted, in points; of chrF for languages for
            which BLEU lacks a tokenizer.
        fingerprint: Hash of the validation set.
    """

    problem: Problem
    tolerance: float
    fingerprint: str


def make_guard(
    data: str, tolerance: float, trained: Problem, data_dir: str | None
) -> Guard:
    """Reads and checks a guard set.

    Args:
        data: Name of a problem, or folder as for the problem `files`.
        tolerance: See `Guard`.
        trained: Problem of the training.
        data_dir: Folder of the data if `data` is the name of a problem.

    Raises:
        UserError: The set cannot be read, has fewer than two pairs or other languages,
            or the training is of a parser.
    """
    if TREES in (trained.source_lang, trained.target_lang):
        raise UserError(f"{FLAG} compares translations, so it cannot guard a parser")
    problem = open_set(data, trained, data_dir)
    for each in (trained, problem):
        if len(list(each.pairs("val"))) < 2:
            raise UserError(
                f"{FLAG} {data}: {each.description('val')}: the comparison needs at "
                "least two pairs"
            )
    return Guard(problem, tolerance, hash_of_pairs(problem.pairs("val")))


@dataclass(frozen=True)
class GuardedChoice:
    """Weights that `choose` selected.

    Attributes:
        checkpoints: Checkpoints whose average was selected; the origin if no other
            weights are eligible.
        differences: Comparison of the origin with the selected weights, by set.
        is_origin: Whether the origin was selected.
    """

    checkpoints: list[Checkpoint]
    differences: Mapping[str, Difference]
    is_origin: bool

    def table(self) -> list[str]:
        """Returns a table of the scores before and after the training."""
        rows = [("", "before", "after", "difference", "p")]
        for name, each in self.differences.items():
            before, after = each.first.score, each.second.score
            rows.append(
                (
                    f"{each.name}, {name}",
                    f"{before:.2f}",
                    f"{after:.2f}",
                    f"{after - before:+.2f}",
                    f"{each.second.p_value:.4f}",
                )
            )
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return [
            "  ".join(
                cell.ljust(width) if number == 0 else cell.rjust(width)
                for number, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]

    def to_dict(self) -> dict[str, Any]:
        """Returns the values for ``result.json``."""
        values = {name: each.to_dict() for name, each in self.differences.items()}
        return {"is_origin": self.is_origin, **values}


def choose(
    candidates: Sequence[list[Checkpoint]],
    translator: Translator,
    variables: Mapping[str, Any],
    validation: Pairs,
    guard: Pairs,
    target_lang: str,
    tolerance: float,
) -> GuardedChoice:
    """Selects the first candidate that is better and harmless, else the origin.

    A candidate is better if its score on the validation set is significantly higher
    than the origin's, and harmless if it loses at most the tolerance on the guard set.
    A small training set can raise the score by chance: without the first condition, a
    training on wrong translations could replace the origin.

    Args:
        candidates: Lists of checkpoints to average; the last one is the origin.
        translator: Translator.
        variables: Variables of its model by name; they get the selected weights.
        validation: Validation pairs.
        guard: Pairs of the guard set.
        target_lang: Target language.
        tolerance: See `Guard`.
    """
    sets = {"validation": validation, "guard": guard}

    def translate_sets() -> dict[str, list[str]]:
        texts: dict[str, list[str]] = {}
        for name, pairs in sets.items():
            sources = [source for source, _ in pairs]
            results, _ = translate(translator, sources, show_progress=False)
            texts[name] = [result.text for result in results]
        return texts

    assign_mean(candidates[-1], variables)
    before = translate_sets()
    for checkpoints in candidates:
        is_origin = checkpoints is candidates[-1]
        assign_mean(checkpoints, variables)
        after = before if is_origin else translate_sets()
        differences = {
            name: _compare(before[name], after[name], pairs, target_lang)
            for name, pairs in sets.items()
        }
        if accepts(differences["validation"], differences["guard"], tolerance):
            break
    return GuardedChoice(checkpoints, differences, is_origin)


def accepts(validation: Difference, guard: Difference, tolerance: float) -> bool:
    """Returns whether weights are better than the origin, and harmless.

    Args:
        validation: Comparison of the origin with the weights on the validation set.
        guard: The same on the guard set.
        tolerance: See `Guard`.
    """
    first, second = validation.first.score, validation.second.score
    loss = guard.first.score - guard.second.score
    return validation.is_significant and second > first and loss <= tolerance


def _compare(
    before: Sequence[str], after: Sequence[str], pairs: Pairs, target_lang: str
) -> Difference:
    """Compares two translations of the same pairs by the language's main score."""
    (difference,) = paired_bootstrap(
        before,
        after,
        [[target for _, target in pairs]],
        tokenize=select_tokenizer(target_lang).name,
        names=[select_score_class(target_lang).figure],
    )
    return difference
