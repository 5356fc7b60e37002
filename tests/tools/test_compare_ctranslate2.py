"""The comparison with CTranslate2 finds what differs, and only that."""

import pytest
from compare_ctranslate2 import Comparer

from t2t_repro.runs.model_dir import ModelDir
from tests import tiny

pytest.importorskip("ctranslate2")
LINES = [source for source, _ in tiny.pairs("test")]


@pytest.fixture(scope="module")
def comparer(trained, tmp_path_factory):
    directory = ModelDir(trained.model_dir)
    model = directory.model(directory.checkpoint())
    # Weights that few updates have moved make every symbol nearly as good as others.
    for variable in model.trainable_variables:
        variable.assign(variable * 3)
    folder = tmp_path_factory.mktemp("ctranslate2")
    return Comparer(model, directory.tokenizer(), folder, [*LINES, " ", "one"], 4)


def test_tokens_are_as_probable_and_greedy_search_is_the_same(comparer):
    tokens, worst = comparer.forced(1)
    assert tokens >= len(LINES) + 1
    assert 0 < worst < 1e-4
    found = comparer.search(1)
    assert (found["lines"], found["equal"]) == (len(LINES) + 1, len(LINES) + 1)
    assert found["differences"] == []


def test_lines_that_differ_are_told_with_their_gap(comparer, monkeypatch):
    def other(beam_size):
        """What CTranslate2 would say had it another opinion of the last line."""
        return [*translated(beam_size)[:-1], [40, 41]]

    translated = comparer._translated
    monkeypatch.setattr(comparer, "_translated", other)
    (difference,) = comparer.search(1)["differences"]
    # The blank line before it is not translated, but counted.
    assert difference["line"] == len(LINES) + 2
    assert difference["ours"] != difference["theirs"]
    # Greedy search took the most probable subword each time.
    assert difference["gap"] > 0
