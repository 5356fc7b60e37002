"""Preparation of data: built once, checked at each use, never left incomplete."""

import fcntl
import os
import re
import shutil
import threading
from pathlib import Path

import pytest

from t2t_repro.data import split_encoding
from t2t_repro.data.prepared_data import manifests, prepare
from t2t_repro.hparams import HParams
from t2t_repro.problems.files import FilesProblem
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.vocabulary import build_vocabulary
from tests import tiny

HPARAMS = HParams(vocab_size=300)
FOLDER = Path("encoded/files.en-de.sentencepiece-300")


class Preparation:
    """Prepares the corpus of a folder; `log` has the lines of the last run."""

    def __init__(self, data_dir):
        self.data_dir = data_dir
        self.folder = data_dir / FOLDER
        self.log = []

    def __call__(self, **settings):
        self.log = []
        problem = FilesProblem(str(self.data_dir), None, None)
        say = self.log.append
        return prepare(problem, HPARAMS, self.data_dir, say, **settings)

    def edit(self, name, before, after):
        path = self.data_dir / name
        text = path.read_text(encoding="utf-8")
        assert before in text
        path.write_text(text.replace(before, after), encoding="utf-8")

    def bytes(self):
        files = (p for p in (self.data_dir / "encoded").rglob("*") if p.is_file())
        return {path: path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A prepared corpus, which tests must not change."""
    preparation = Preparation(tiny.write_corpus(tmp_path_factory.mktemp("data")))
    preparation()
    return preparation


@pytest.fixture
def run(original, tmp_path):
    """A copy of the prepared corpus that a test may change."""
    shutil.copytree(original.data_dir, tmp_path / "data")
    return Preparation(tmp_path / "data")


def test_first_run_builds_and_reports_vocabulary_and_shards(original):
    assert original.log[0] == "building a vocabulary of 300 subwords"
    assert sorted(p.name for p in original.folder.iterdir()) == [
        "checks.json",
        "train",
        "val",
        "vocab.model",
    ]
    assert original.log[1] == "encoding files train: train.en and train.de, 60 lines"
    assert original.log[2].startswith("  60 pairs, ")
    assert original.log[4].startswith("  5 pairs, ")


def test_prepared_data_decodes_to_the_corpus(run):
    data = run()
    for split, pairs in (("train", data.train), ("val", data.val)):
        batch = pairs.gather(list(range(len(pairs))))
        texts = [
            [text.decode() for text in data.tokenizer.decode(batch[side]).numpy()]
            for side in ("inputs", "targets")
        ]
        assert list(zip(*texts, strict=True)) == tiny.pairs(split)


def test_each_side_has_the_vocabulary_of_its_text(original, tmp_path):
    settings = {"share_vocab": False, "share_embeddings": False}
    hparams, say = HPARAMS.replace(**settings), Preparation(tmp_path).log
    problem = FilesProblem(str(original.data_dir), None, None)
    data = prepare(problem, hparams, tmp_path, say.append)
    assert data.directory == tmp_path / f"{FOLDER}-separate"
    assert say[0] == "building a source vocabulary of 300 subwords"
    assert "building a target vocabulary of 300 subwords" in say
    sides = data.tokenizer.source, data.tokenizer.target
    for side, lines in zip(sides, zip(*tiny.pairs("train"), strict=True), strict=True):
        path = tmp_path / "alone.model"
        size = side.vocab_size  # The text of one side may be too small for 300.
        build_vocabulary("sentencepiece", lines, size, path)
        assert side.contents == path.read_bytes()
    batch = data.val.gather(list(range(len(data.val))))
    for column, (side, ids) in enumerate(zip(sides, batch.values(), strict=True)):
        texts = [text.decode() for text in side.decode(ids).numpy()]
        assert texts == [pair[column] for pair in tiny.pairs("val")]
    again = prepare(problem, hparams, tmp_path, say.append)
    assert say[-2] == f"reusing {data.directory / 'val'}"
    # A given vocabulary must fit.
    for name, changes, message in (
        ("vocab.sides", {}, "a vocabulary for each side; set share_vocab=false"),
        ("../../alone.model", settings, "for both sides; set share_vocab=true"),
    ):
        path = again.directory / name
        with pytest.raises(UserError, match=message):
            prepare(problem, HPARAMS.replace(**changes), tmp_path, print, path)


def test_second_run_reuses_everything(run):
    before = run.bytes()
    run()
    *reused, warning = run.log
    assert reused == [
        f"reusing {run.folder / name}" for name in ("vocab.model", "train", "val")
    ]
    assert warning.startswith("warning: 1 of 5 val pairs (20.0%) are also in the")
    assert run.bytes() == before


def test_interrupted_run_is_resumed(run):
    before = run.bytes()
    shutil.rmtree(run.folder / "val")
    run()
    assert run.log[1:3] == [
        f"reusing {run.folder / 'train'}",
        "encoding files val: val.en and val.de, 5 lines",
    ]
    assert run.bytes() == before


def test_skipped_pairs_are_reported(run):
    shutil.rmtree(run.folder)
    lines = (run.data_dir / "train.en").read_text(encoding="utf-8").split("\n")
    lines[4] = ""
    (run.data_dir / "train.en").write_text("\n".join(lines), encoding="utf-8")
    run()
    assert "59 pairs" in run.log[2]
    assert run.log[2].endswith("; skipped 1 (empty source, first at line 5)")


@pytest.mark.parametrize("name", ["train.en", "val.de"])
def test_changed_data_is_detected_and_rebuilt(run, name):
    run.edit(name, "n", "m")
    split = name.partition(".")[0]
    run()
    assert run.log[0].startswith(f"encoding {split} again: ")
    assert "was made from other data of problem files" in run.log[0]
    # The vocabulary and both splits depend on the training data.
    is_val = split == "val"
    assert (f"reusing {run.folder / 'train'}" in run.log) == is_val
    assert ("building a vocabulary of 300 subwords" in run.log) != is_val
    assert "encoding files val: val.en and val.de, 5 lines" in run.log
    run()
    assert run.log[0].startswith("reusing")


def test_damaged_shard_is_detected_and_rebuilt(run):
    before = run.bytes()
    (path,) = (run.folder / "train").glob("*.tokens.npy")
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    run()
    assert "tokens.npy is damaged" in run.log[0]
    assert run.bytes() == before


def test_changed_vocabulary_is_detected_and_rebuilt(run):
    before = run.bytes()
    lines = [side for pair in tiny.pairs("train") for side in pair]
    build_vocabulary("sentencepiece", lines, 290, run.folder / "vocab.model")
    run()
    assert "encoded with another vocabulary" in run.log[0]
    assert run.bytes() == before


def test_nothing_is_deleted_if_the_text_is_gone(run):
    """A training can still resume with intact shards."""
    (run.data_dir / "train.en").rename(run.data_dir / "gone")
    identity = manifests(run.folder)["train"].origin.fingerprint
    run(fingerprints={"train": identity})
    assert all(line.startswith(("reusing", "warning")) for line in run.log)
    before = run.bytes()
    with pytest.raises(UserError, match=r"train\.en does not exist"):
        run(fingerprints={"train": "other data"})
    assert run.bytes() == before


def test_a_grown_corpus_is_encoded_again_with_a_given_vocabulary(run, original):
    vocab_file = original.folder / "vocab.model"
    folder = run(vocab_file=vocab_file).directory
    for _ in range(2):
        for lang in ("en", "de"):
            with (run.data_dir / f"train.{lang}").open("a") as file:
                file.write("ten\n")
        # The vocabulary may be the one in the folder that is rebuilt.
        assert run(vocab_file=folder / "vocab.model").directory == folder
        assert (folder / "vocab.model").read_bytes() == vocab_file.read_bytes()
    assert manifests(folder)["train"].pairs == 62


def test_existing_vocabulary_is_copied_unchanged(run, original):
    path = run.data_dir / "mine.model"
    shutil.copyfile(original.folder / "vocab.model", path)
    data = run(vocab_file=path)
    assert data.directory != run.folder
    assert (data.directory / "vocab.model").read_bytes() == path.read_bytes()
    assert data.tokenizer.fingerprint[:12] in data.directory.name
    path.unlink()
    # The same vocabulary under another name is reused.
    again = run(vocab_file=original.folder / "vocab.model")
    assert again.directory == data.directory
    assert run.log[0] == f"reusing {data.directory / 'vocab.model'}"


def test_invalid_vocabulary_file_leaves_no_files(run):
    shutil.rmtree(run.data_dir / "encoded")
    (run.data_dir / "bad.model").write_bytes(b"no vocabulary")
    for name, words in (
        ("absent.model", "no such vocabulary file"),
        ("bad.model", "bad.model"),
        ("train.en", "the name of a vocabulary file must be"),
        (".", "is a folder"),
    ):
        with pytest.raises(UserError, match=words):
            run(vocab_file=run.data_dir / name)
    assert not (run.data_dir / "encoded").exists()


@pytest.mark.parametrize("name", ["train.en", "val.de"])
def test_rejects_invalid_data_before_writing_anything(run, name):
    shutil.rmtree(run.data_dir / "encoded")
    with (run.data_dir / name).open("ab") as file:
        file.write(b"one more\n")
    with pytest.raises(UserError, match="lines but"):
        run()
    assert not (run.data_dir / "encoded").exists()


def test_small_text_gives_the_largest_possible_vocabulary(run):
    """This makes it possible to try one of the paper's sets on a few sentences."""
    problem = FilesProblem(str(run.data_dir), None, None)
    data = prepare(problem, HParams(), run.data_dir, run.log.append)
    largest = data.tokenizer.vocab_size
    assert 300 < largest < 1000
    assert run.log[:2] == [
        "building a vocabulary of 37,000 subwords",
        "  vocab_size 37000 is too large for this text: the largest possible is "
        f"{largest}; using that size instead",
    ]


def test_vocabulary_too_small_for_the_text_leaves_no_files(run):
    shutil.rmtree(run.data_dir / "encoded")
    problem = FilesProblem(str(run.data_dir), None, None)
    with pytest.raises(UserError, match="vocab_size 200 is too small"):
        prepare(problem, HParams(vocab_size=200), run.data_dir, run.log.append)
    assert not (run.data_dir / "encoded").exists()


def test_progress_is_reported_while_encoding(run, monkeypatch):
    monkeypatch.setattr(split_encoding, "_PROGRESS_PAIRS", 10)
    shutil.rmtree(run.folder / "train")
    run()
    pattern = r"  60 pairs  [\d,]+ pairs/s  ETA 0:00:00"
    assert any(re.fullmatch(pattern, line) for line in run.log)


def test_manifests_contain_the_origin_of_the_splits(original):
    by_split = manifests(original.folder)
    assert by_split["train"].origin.problem == "files"
    assert by_split["val"].origin.description == "val.en and val.de, 5 lines"


def test_second_process_reports_that_it_waits_for_the_first(run):
    descriptor = os.open(run.data_dir, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)  # Simulates another process.
    waiting = threading.Thread(target=run)
    waiting.start()
    while not run.log:
        waiting.join(timeout=0.01)
    assert run.log == [
        f"waiting for another process that prepares data in {run.data_dir}"
    ]
    os.close(descriptor)
    waiting.join(timeout=60)
    assert run.log[1] == f"reusing {run.folder / 'vocab.model'}"


def test_warnings_are_repeated_until_a_split_changes(run):
    """The checks run once, and again if a split has changed."""
    for lang in ("en", "de"):
        lines = (run.data_dir / f"train.{lang}").read_text(encoding="utf-8")
        first = lines.partition("\n")[0] + "\n"
        (run.data_dir / f"test.{lang}").write_text(first * 3, encoding="utf-8")
    warning = "warning: 3 of 3 test pairs (100.0%) are also in the"
    for _ in range(2):
        run()
        assert run.log[-1].startswith(warning)
    checks = (run.folder / "checks.json").read_bytes()
    (run.data_dir / "test.en").unlink()
    run()
    assert not run.log[-1].startswith("warning: 3")
    assert (run.folder / "checks.json").read_bytes() != checks


def test_training_text_is_read_once_for_the_vocabulary_and_once_for_the_shards(run):
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
        prepare(problem, HPARAMS, run.data_dir, run.log.append, **settings)
        return [name for name in problem.passes if name in ("train", "bytes")]

    identity = Counting().fingerprint()
    shutil.rmtree(run.data_dir / "encoded")
    assert passes() == ["bytes", "train", "train"]
    assert passes(fingerprints={"train": identity}) == []
    (run.folder / "checks.json").unlink()
    assert passes() == ["bytes", "train"]


def test_swapped_languages_cause_a_warning(run):
    for name in ("en", "de"):
        (run.data_dir / f"val.{name}").rename(run.data_dir / f"{name}.val")
    for name, other in (("en", "de"), ("de", "en")):
        (run.data_dir / f"{name}.val").rename(run.data_dir / f"val.{other}")
    run()
    assert any(line.startswith("warning: the source side of") for line in run.log)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"findings": []}', "[" * 99_999])
def test_damaged_warnings_are_computed_again(run, text):
    path = run.folder / "checks.json"
    before = path.read_bytes()
    path.write_text(text)
    run()
    assert path.read_bytes() == before
