"""Baseline that looks up the nearest training sentence."""

import numpy as np
import pytest
import sacrebleu

from t2t_repro.problems.translate_ende_numbers import TranslateEndeNumbers

NEAREST_BY_OVERLAP = 30


def edit_distance(one: list[str], other: list[str]) -> int:
    """Returns the edit distance of two sentences in words."""
    row = list(range(len(other) + 1))
    for i, word in enumerate(one, start=1):
        diagonal, row[0] = row[0], i
        for j, other_word in enumerate(other, start=1):
            cost = min(row[j] + 1, row[j - 1] + 1, diagonal + (word != other_word))
            diagonal, row[j] = row[j], cost
    return row[-1]


def bags(sources: list[list[str]], index: dict[str, int]) -> np.ndarray:
    """Returns a 0/1 matrix of the words in each source, float32 (sources, words)."""
    table = np.zeros((len(sources), len(index)), np.float32)
    for row, words in zip(table, sources, strict=True):
        row[[index[word] for word in words if word in index]] = 1
    return table


def nearest_targets(
    train: list[tuple[str, str]], sources: list[list[str]]
) -> list[str]:
    """Returns the target of the nearest training source for each source.

    The nearest source has the smallest edit distance (in words) among the
    training sources with the highest Jaccard similarity.
    """
    train_sources = [en.split() for en, _ in train]
    vocabulary = sorted({word for words in train_sources for word in words})
    index = {word: i for i, word in enumerate(vocabulary)}
    train_bags, source_bags = bags(train_sources, index), bags(sources, index)
    sizes, targets = train_bags.sum(1), []
    for words, bag in zip(sources, source_bags, strict=True):
        common = train_bags @ bag
        jaccard = common / (sizes + bag.sum() - common)
        best = np.argpartition(-jaccard, NEAREST_BY_OVERLAP)[:NEAREST_BY_OVERLAP]
        distances = [edit_distance(words, train_sources[i]) for i in best]
        targets.append(train[best[int(np.argmin(distances))]][1])
    return targets


@pytest.mark.medium
def test_nearest_training_target_scores_below_60_bleu() -> None:
    problem = TranslateEndeNumbers()
    train = list(problem.pairs("train"))
    test = list(problem.pairs("test"))[::21]  # 96 sentences of all kinds
    guesses = nearest_targets(train, [en.split() for en, _ in test])
    bleu = sacrebleu.corpus_bleu(guesses, [[de for _, de in test]])
    assert bleu.score < 60
