"""Tests of `problems.create`."""

from __future__ import annotations

import pytest

from t2t_repro import problems
from t2t_repro.system.errors import UserError


def test_every_name_creates_its_problem(tmp_path):
    (tmp_path / "train.en").touch()
    (tmp_path / "train.de").touch()
    (tmp_path / "02").mkdir()
    for name in problems.names():
        problem = problems.create(name, str(tmp_path))
        assert problem.name == name
        assert problem.source_lang == "en"
        languages = {"enfr": "fr", "parse": "trees"}
        expected = [lang for part, lang in languages.items() if part in name]
        assert [problem.target_lang] == (expected or ["de"])


@pytest.mark.parametrize(
    ("typo", "meant"),
    [
        ("translate_ende_wmt41", "translate_ende_wmt14"),
        ("file", "files"),
        ("translate_ende_number", "translate_ende_numbers"),
    ],
)
def test_unknown_name_suggests_the_nearest_one(typo, meant):
    with pytest.raises(UserError, match=f"did you mean {meant}\\?"):
        problems.create(typo)


def test_rejects_another_language():
    problem = problems.create("translate_enfr_wmt14", None, "en", "fr")
    assert problem.target_lang == "fr"
    with pytest.raises(UserError, match="target_lang de: translate_enfr_wmt14"):
        problems.create("translate_enfr_wmt14", None, "en", "de")
    with pytest.raises(UserError, match="source_lang de: translate_ende_numbers"):
        problems.create("translate_ende_numbers", None, "de", "en")
