"""Tests of the warnings about corpora that are unsuitable for reproducing results."""

import pytest

from t2t_repro.problems import checks
from t2t_repro.runs.model_dir import ModelDir
from tests import run_command, tiny
from tests.tfds_local import write_local_dataset

# Prefixes of the warnings. Each warning must appear at most once.
SGML, MOSES, BPE, WMT16 = (
    "SGML markup in ",
    "tokens of Moses' tokenizer in ",
    "BPE marks of subword-nmt in ",
    "the training data has ",
)


def warnings(command, folder, *flags, status=0):
    """Runs a command on the corpus in a folder and returns its warnings."""
    result = run_command.run(
        command,
        *("--data_dir", str(folder / "data")),
        *("--hparams", str(tiny.write_hparams(folder)), *flags),
    )
    assert result.status == status, result.err
    return [
        line.removeprefix("warning: ")
        for line in result.out.splitlines()
        if line.startswith(tuple(f"warning: {k}" for k in (SGML, MOSES, BPE, WMT16)))
    ]


def rewrite(folder, split, change):
    """Applies `change`, called with line number and line, to both sides of a split."""
    for lang in ("en", "de"):
        path = folder / f"data/{split}.{lang}"
        lines = path.read_text(encoding="utf-8").splitlines()
        text = "".join(f"{change(n, line)}\n" for n, line in enumerate(lines, 1))
        path.write_text(text, encoding="utf-8")


@pytest.fixture
def corpus(tmp_path):
    tiny.write_corpus(tmp_path / "data")
    return tmp_path


def test_training_warns_before_it_starts(corpus):
    rewrite(corpus, "train", lambda n, line: f"{line} twen@@ ty")
    model_dir = ModelDir(corpus / "model")
    # Training cannot start in a locked folder.
    with model_dir.lock():
        flags = ("--train_steps", "1", "--model_dir", str(model_dir.path))
        (warning,) = warnings("train", corpus, *flags, status=2)
    assert warning.startswith(f"{BPE}60 of 60 lines of train.en, ")


@pytest.mark.medium
def test_wmt_problems_are_also_checked(tmp_path, monkeypatch):
    splits = {
        "train": [(f"{en} twen@@ ty", de) for en, de in tiny.pairs("train")],
        "validation": tiny.pairs("val"),
        "test": tiny.pairs("test"),
    }
    write_local_dataset(tmp_path / "data", splits)
    monkeypatch.setitem(checks._WMT16_PAIRS, tiny.SIZES["train"], "an edition")
    wmt16, bpe = warnings("datagen", tmp_path, "--problem", "translate_ende_wmt14")
    assert wmt16.startswith("the training data has 60 pairs, ")
    assert bpe.startswith(f"{BPE}60 of 60 lines of train.en, such as ")
