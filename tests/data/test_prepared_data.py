"""Vocabulary and shards are made once, checked at each use, and never half made."""

import fcntl
import os
import shutil
import threading
from pathlib import Path

import pytest

from t2t_repro.data import prepared_data
from t2t_repro.data.prepared_data import manifests, prepare
from t2t_repro.hparams import HParams
from t2t_repro.problems.files import FilesProblem
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.vocabulary import build_vocabulary
from tests import tiny

HPARAMS = HParams(vocab_size=300)
FOLDER = Path("encoded/files.en-de.sentencepiece-300")


class Preparation:
    """Prepares the corpus of a folder and keeps what was said."""

    def __init__(self, data_dir):
        self.data_dir = data_dir
        self.folder = data_dir / FOLDER
        self.said = []

    def __call__(self, **settings):
        self.said = []
        problem = FilesProblem(str(self.data_dir), None, None)
        say = self.said.append
        return prepare(problem, HPARAMS, self.data_dir, say, **settings)

    def edit(self, name, before, after):
        path = self.data_dir / name
        text = path.read_text(encoding="utf-8")
        assert before in text
        path.write_text(text.replace(before, after), encoding="utf-8")

    def bytes(self):
        files = (p for p in (self.data_dir / "encoded").rglob("*") if p.is_file())
        return {path.name: path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A corpus with everything made of it."""
    made = Preparation(tiny.write_corpus(tmp_path_factory.mktemp("data")))
    made()
    return made


@pytest.fixture
def run(original, tmp_path):
    """A copy that a test may damage."""
    shutil.copytree(original.data_dir, tmp_path / "data")
    return Preparation(tmp_path / "data")


def test_the_first_run_makes_vocabulary_and_shards_and_says_so(original):
    assert original.said[0] == "building a vocabulary of 300 subwords"
    assert sorted(p.name for p in original.folder.iterdir()) == [
        "checks.json",
        "train",
        "val",
        "vocab.model",
    ]
    assert original.said[1] == "encoding files train"
    assert original.said[2].startswith("  60 pairs, ")
    assert original.said[4].startswith("  5 pairs, ")


def test_what_was_prepared_decodes_to_the_corpus(run):
    data = run()
    for split, pairs in (("train", data.train), ("val", data.val)):
        batch = pairs.gather(list(range(len(pairs))))
        texts = [
            [text.decode() for text in data.tokenizer.decode(batch[side]).numpy()]
            for side in ("inputs", "targets")
        ]
        assert list(zip(*texts, strict=True)) == tiny.pairs(split)


def test_a_second_run_reuses_everything(run):
    before = run.bytes()
    run()
    *reused, warning = run.said
    assert reused == [
        f"reusing {run.folder / name}" for name in ("vocab.model", "train", "val")
    ]
    assert warning.startswith("warning: 1 of 5 val pairs (20.0%) are in the training")
    assert run.bytes() == before


def test_a_run_that_was_interrupted_goes_on(run):
    before = run.bytes()
    shutil.rmtree(run.folder / "val")
    run()
    assert run.said[1:3] == [f"reusing {run.folder / 'train'}", "encoding files val"]
    assert run.bytes() == before


def test_pairs_left_out_are_counted_out_loud(run):
    shutil.rmtree(run.folder)
    lines = (run.data_dir / "train.en").read_text(encoding="utf-8").split("\n")
    lines[4] = ""
    (run.data_dir / "train.en").write_text("\n".join(lines), encoding="utf-8")
    run()
    assert "59 pairs" in run.said[2]
    assert run.said[2].endswith("; 1 left out (empty source, first at line 5)")


@pytest.mark.parametrize("name", ["train.en", "val.de"])
def test_changed_data_are_noticed_and_datagen_mends_it(run, name):
    run.edit(name, "n", "m")
    with pytest.raises(UserError, match=r"other data of problem files.*datagen again"):
        run()
    run(renew=True)
    assert "making" in run.said[0]
    assert "other data" in run.said[0]
    run()
    assert run.said[0].startswith("reusing")


def test_a_damaged_shard_is_noticed_and_datagen_mends_it(run):
    before = run.bytes()
    (path,) = (run.folder / "train").glob("*.tokens.npy")
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(UserError, match=r"tokens\.npy is damaged.*datagen again"):
        run()
    run(renew=True)
    assert "is damaged" in run.said[0]
    assert run.bytes() == before


def test_a_changed_vocabulary_is_noticed(run):
    lines = [side for pair in tiny.pairs("train") for side in pair]
    build_vocabulary("sentencepiece", lines, 290, run.folder / "vocab.model")
    with pytest.raises(UserError, match="encoded with another vocabulary"):
        run()


def test_nothing_is_renewed_that_is_in_order(run):
    before = run.bytes()
    run(renew=True)
    assert all(line.startswith(("reusing", "warning")) for line in run.said)
    assert run.bytes() == before


def test_a_given_vocabulary_is_copied_as_it_is(run, original):
    given = run.data_dir / "mine.model"
    shutil.copyfile(original.folder / "vocab.model", given)
    data = run(vocab_file=given)
    assert data.directory != run.folder
    assert (data.directory / "vocab.model").read_bytes() == given.read_bytes()
    assert data.tokenizer.fingerprint[:12] in data.directory.name
    given.unlink()
    # The copy under another name is the same vocabulary.
    again = run(vocab_file=original.folder / "vocab.model")
    assert again.directory == data.directory
    assert run.said[0] == f"reusing {data.directory / 'vocab.model'}"


def test_a_given_vocabulary_that_is_none_leaves_nothing_behind(run):
    shutil.rmtree(run.data_dir / "encoded")
    (run.data_dir / "bad.model").write_bytes(b"no vocabulary")
    for name, words in (
        ("absent.model", "no such vocabulary file"),
        ("bad.model", "bad.model"),
        ("train.en", "is named"),
        (".", "is a folder"),
    ):
        with pytest.raises(UserError, match=words):
            run(vocab_file=run.data_dir / name)
    assert not (run.data_dir / "encoded").exists()


@pytest.mark.parametrize("name", ["train.en", "val.de"])
def test_bad_data_are_refused_before_anything_is_written(run, name):
    shutil.rmtree(run.data_dir / "encoded")
    with (run.data_dir / name).open("ab") as file:
        file.write(b"one more\n")
    with pytest.raises(UserError, match="lines but"):
        run()
    assert not (run.data_dir / "encoded").exists()


def test_a_text_too_small_for_the_vocabulary_gives_the_largest_it_can(run):
    """So that a paper's set can be tried on a few sentences."""
    problem = FilesProblem(str(run.data_dir), None, None)
    data = prepare(problem, HParams(), run.data_dir, run.said.append)
    largest = data.tokenizer.vocab_size
    assert 300 < largest < 1000
    assert run.said[:2] == [
        "building a vocabulary of 37,000 subwords",
        "  vocab_size 37000 is too large for this text: the largest possible is "
        f"{largest}, which is taken instead",
    ]


def test_a_vocabulary_too_small_for_the_text_leaves_nothing_behind(run):
    shutil.rmtree(run.data_dir / "encoded")
    problem = FilesProblem(str(run.data_dir), None, None)
    with pytest.raises(UserError, match="vocab_size 200 is too small"):
        prepare(problem, HParams(vocab_size=200), run.data_dir, run.said.append)
    assert not (run.data_dir / "encoded").exists()


def test_large_data_are_told_of_while_they_are_read(run, monkeypatch):
    monkeypatch.setattr(prepared_data, "_PROGRESS_PAIRS", 10)
    shutil.rmtree(run.folder / "train")
    run()
    assert "  60 pairs" in run.said


def test_manifests_say_where_the_splits_come_from(original):
    found = manifests(original.folder)
    assert found["train"].origin.problem == "files"
    assert found["val"].origin.description == "val.en and val.de, 5 lines"


def test_a_second_process_waits_for_the_first_and_says_so(run):
    descriptor = os.open(run.data_dir, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)  # As a process that prepares here has it.
    waiting = threading.Thread(target=run)
    waiting.start()
    while not run.said:
        waiting.join(timeout=0.01)
    assert run.said == [
        f"waiting for another process that prepares data in {run.data_dir}"
    ]
    os.close(descriptor)
    waiting.join(timeout=60)
    assert run.said[1] == f"reusing {run.folder / 'vocab.model'}"


def test_what_statistics_say_against_the_corpus_is_told_every_time(run):
    """Found once, and again when a split has changed."""
    for lang in ("en", "de"):
        lines = (run.data_dir / f"train.{lang}").read_text(encoding="utf-8")
        first = lines.partition("\n")[0] + "\n"
        (run.data_dir / f"test.{lang}").write_text(first * 3, encoding="utf-8")
    told = "warning: 3 of 3 test pairs (100.0%) are also in the training data: "
    for _ in range(2):
        run()
        assert run.said[-1].startswith(told)
    checks = (run.folder / "checks.json").read_bytes()
    (run.data_dir / "test.en").unlink()
    run()
    assert not run.said[-1].startswith("warning: 3")
    assert (run.folder / "checks.json").read_bytes() != checks


def test_the_training_text_is_read_for_the_vocabulary_and_for_the_shards(run):
    class Counting(FilesProblem):
        def __init__(self):
            super().__init__(str(run.data_dir), None, None)
            self.passes = []

        def pairs(self, split):
            self.passes.append(split)
            return super().pairs(split)

        def fingerprint(self):
            self.passes.append("bytes")
            return super().fingerprint()

    def passes(**settings):
        problem = Counting()
        prepare(problem, HPARAMS, run.data_dir, run.said.append, **settings)
        return [each for each in problem.passes if each in ("train", "bytes")]

    identity = Counting().fingerprint()
    shutil.rmtree(run.data_dir / "encoded")
    assert passes() == ["bytes", "train", "train"]
    assert passes(fingerprints={"train": identity}) == []
    (run.folder / "checks.json").unlink()
    assert passes() == ["bytes", "train"]


def test_swapped_files_are_told(run):
    for name in ("en", "de"):
        (run.data_dir / f"val.{name}").rename(run.data_dir / f"{name}.val")
    for name, other in (("en", "de"), ("de", "en")):
        (run.data_dir / f"{name}.val").rename(run.data_dir / f"val.{other}")
    run(renew=True)
    assert any(line.startswith("warning: the source side of") for line in run.said)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"findings": []}'])
def test_damaged_findings_are_found_again(run, text):
    path = run.folder / "checks.json"
    before = path.read_bytes()
    path.write_text(text)
    run()
    assert path.read_bytes() == before
