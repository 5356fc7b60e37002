"""Tests of the command `datagen`."""

import json
import shutil

import pytest

from t2t_repro import datagen, hparams, problems
from tests import run_command, tiny


@pytest.fixture
def arguments(tmp_path):
    data_dir = tiny.write_corpus(tmp_path / "data")
    spec = str(tiny.write_hparams(tmp_path))
    return ["--problem", "files", "--data_dir", str(data_dir), "--hparams", spec]


@pytest.mark.medium
def test_datagen_writes_files_that_training_reuses(arguments, tmp_path):
    result = run_command.run("datagen", *arguments, "--json")
    assert result.status == 0, result.err
    assert result.err.startswith("building a vocabulary")
    values = json.loads(result.out)
    folder = tmp_path / "data/encoded/files.en-de.sentencepiece-300"
    assert values["directory"] == str(folder)
    assert {name: split["pairs"] for name, split in values["splits"].items()} == {
        "train": tiny.SIZES["train"],
        "val": tiny.SIZES["val"],
    }
    again = run_command.run("datagen", *arguments)
    assert again.err == ""
    *reusing, last = again.out.splitlines()
    assert all(line.startswith(("reusing", "warning: 1 of 5 val")) for line in reusing)
    assert last == (
        f"{folder} is ready: vocabulary of 300, 60 training pairs, 5 validation pairs"
    )


def read_files(folder):
    """Returns the contents of all files in a folder, by path."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in files}


@pytest.mark.medium
def test_parts_of_two_machines_are_the_files_of_one(arguments, tmp_path):
    folder = tmp_path / "data" / "encoded"

    def encode_part(number):
        flags = ("--shard_index", number, "--num_shards", "2")
        return run_command.run("datagen", *arguments, *flags)

    results = [encode_part(number) for number in "10"]
    assert [result.status for result in results] == [0, 0]
    assert results[0].out.startswith("building a vocabulary")
    assert results[0].out.endswith(
        "--shard_index 1 is done; 0 shards of all parts are ready: after the last "
        "part, run the command without both flags\n"
    )
    assert "reusing" in results[1].out and "; 1 shard of all" in results[1].out
    assert run_command.run("datagen", *arguments).status == 0
    joined = read_files(folder)
    again = encode_part("1")
    assert again.out.startswith("reusing") and "; 1 shard of all" in again.out
    assert read_files(folder) == joined
    assert not any(folder.rglob(".unfinished-*"))
    shutil.rmtree(folder)
    assert run_command.run("datagen", *arguments).status == 0
    assert read_files(folder) == joined


@pytest.mark.medium
def test_read_only_data_are_encoded_in_another_folder(arguments, tmp_path):
    data = tmp_path / "data"
    before = {path: path.stat().st_mtime_ns for path in (data, *data.iterdir())}
    result = run_command.run("datagen", *arguments, "--shard_dir", f"{tmp_path}/shards")
    assert result.status == 0, result.err
    folder = tmp_path / "shards/encoded/files.en-de.sentencepiece-300"
    assert f"{folder} is ready" in result.out
    assert (folder / "train/manifest.json").exists()
    assert before == {path: path.stat().st_mtime_ns for path in (data, *data.iterdir())}


@pytest.mark.parametrize(
    ("problem", "vocab_size"),
    [
        ("translate_ende_numbers", 1600),
        ("translate_ende_wmt14", 37_000),
        ("translate_enfr_wmt14", 32_000),
        ("translate_ende_wmt_t2t", 32_768),
        ("files", 37_000),
    ],
)
def test_the_default_set_has_the_vocabulary_size_of_the_problem(problem, vocab_size):
    assert problem in problems.names()
    assert hparams.load(datagen.default_set(problem)).vocab_size == vocab_size
