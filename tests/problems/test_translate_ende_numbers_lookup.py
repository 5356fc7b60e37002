"""Looking up the nearest training sentence does not translate the test split."""

import numpy as np
import pytest
import sacrebleu

from t2t_repro.problems.translate_ende_numbers import TranslateEndeNumbers

NEAREST_BY_OVERLAP = 30


def edit_distance(one: list[str], other: list[str]) -> int:
    """Returns the number of words to insert, delete or replace."""
    row = list(range(len(other) + 1))
    for i, word in enumerate(one, start=1):
        diagonal, row[0] = row[0], i
        for j, other_word in enumerate(other, start=1):
            cost = min(row[j] + 1, row[j - 1] + 1, diagonal + (word != other_word))
            diagonal, row[j] = row[j], cost
    return row[-1]


def bags(sources: list[list[str]], index: dict[str, int]) -> np.ndarray:
    """Returns which words occur in which source, float32 (sources, words)."""
    table = np.zeros((len(sources), len(index)), np.float32)
    for row, words in zip(table, sources, strict=True):
        row[[index[word] for word in words if word in index]] = 1
    return table


def nearest_targets(
    train: list[tuple[str, str]], sources: list[list[str]]
) -> list[str]:
    """Returns for each source the target of the nearest training source.

    The nearest is the one at the least edit distance (in words), among the
    training sources with the greatest overlap of words (Jaccard).
    """
    train_sources = [en.split() for en, _ in train]
    vocabulary = sorted({word for words in train_sources for word in words})
    index = {word: i for i, word in enumerate(vocabulary)}
    known, asked = bags(train_sources, index), bags(sources, index)
    sizes, targets = known.sum(1), []
    for words, bag in zip(sources, asked, strict=True):
        common = known @ bag
        jaccard = common / (sizes + bag.sum() - common)
        best = np.argpartition(-jaccard, NEAREST_BY_OVERLAP)[:NEAREST_BY_OVERLAP]
        distances = [edit_distance(words, train_sources[i]) for i in best]
        targets.append(train[best[int(np.argmin(distances))]][1])
    return targets


@pytest.mark.medium
def test_the_nearest_training_target_scores_below_60_bleu() -> None:
    problem = TranslateEndeNumbers()
    train = list(problem.pairs("train"))
    test = list(problem.pairs("test"))[::7]  # 286 sentences, all five kinds
    guesses = nearest_targets(train, [en.split() for en, _ in test])
    bleu = sacrebleu.corpus_bleu(guesses, [[de for _, de in test]])
    assert bleu.score < 60
