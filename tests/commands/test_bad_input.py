"""Whatever a person gets wrong ends in one clear line, and nothing half-written."""

import os
import subprocess
from pathlib import Path

import pytest

from tests import command_line, tiny


@pytest.fixture
def data_dir(tmp_path):
    return tiny.write_corpus(tmp_path / "data")


@pytest.fixture
def hparams(tmp_path):
    return tiny.write_hparams(tmp_path)


def refused(command, *arguments):
    """Runs a command that must fail in one line; returns the line."""
    done = command_line.run(command, *map(str, arguments))
    assert command_line.is_one_clear_line(done), done
    return done.err.removesuffix("\n")


def files(folder):
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def remove(path):
    path.unlink()


def shorten(path):
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:-1]), encoding="utf-8")


def empty(path):
    path.write_bytes(b"")


def spoil(path):
    lines = path.read_bytes().split(b"\n")
    lines[2] = b"f\xfcnf"  # Latin-1.
    path.write_bytes(b"\n".join(lines))


@pytest.mark.parametrize("name", ["train.de", "val.de", "test.de"])
@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (remove, "{path} does not exist"),
        (shorten, "{path} has {fewer} lines but"),
        (empty, "{path} is empty"),
        (spoil, "{path}:3:2: byte 0xfc is not valid UTF-8"),
    ],
)
def test_bad_text_files_are_refused_before_anything_is_written(
    tmp_path, data_dir, hparams, name, damage, words
):
    path = data_dir / name
    damage(path)
    before = files(tmp_path)
    languages = ("--source_lang", "en", "--target_lang", "de")
    line = refused(
        "train",
        *("--hparams", hparams, "--data_dir", data_dir, *languages),
        *("--model_dir", tmp_path / "model"),
    )
    fewer = tiny.SIZES[path.stem] - 1
    expected = words.format(path=path, fewer=fewer)
    # Either file of a pair may be named first.
    assert expected in line or (damage is shorten and f"{path} has {fewer}" in line)
    assert files(tmp_path) == before
    assert not (tmp_path / "model").exists()
    assert not (data_dir / "encoded").exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"--hparams": "bigg"}, "no hyper-parameter set is called 'bigg'; did you"),
        ({"--hparams": "absent.yaml"}, "absent.yaml does not exist"),
        ({"--hparams": "tiny,warmup=1"}, "'warmup'; did you mean 'warmup_steps'?"),
        ({"--hparams": "tiny,dropout=much"}, "dropout must be a number, not 'much'"),
        ({"--hparams": "tiny,d_model=0"}, "d_model=0 must be at least 1"),
        ({"--problem": "file"}, "there is no such problem; did you mean files?"),
        ({"--data_dir": "absent"}, "--data_dir absent is not an existing folder"),
        ({"--source_lang": "fr"}, "holds train.de, train.en"),
        ({"--source_lang": "fr", "--target_lang": "de"}, ".fr does not exist"),
        ({"--modeldir": "m"}, "unknown flag --modeldir; did you mean '--model_dir'?"),
        ({"--train_steps": "0"}, "--train_steps: must be a whole number of at least 1"),
        ({"--train_steps": "ten"}, "must be a whole number of at least 1, not 'ten'"),
        ({"--strategy": "mirror"}, "--strategy mirror: use one of auto, one_device"),
        ({"--replicas": "-1"}, "--replicas: must be a whole number of at least 0"),
        ({"--vocab_file": "absent.model"}, "absent.model: no such vocabulary file"),
    ],
)
def test_bad_flags_of_train_are_refused(tmp_path, data_dir, hparams, changes, words):
    flags = {
        "--hparams": str(hparams),
        "--problem": "files",
        "--data_dir": str(data_dir),
        "--model_dir": str(tmp_path / "model"),
    } | changes
    before = files(tmp_path)
    line = refused("train", *(part for flag in flags.items() for part in flag))
    assert words in line
    assert files(tmp_path) == before


@pytest.mark.parametrize(
    ("command", "flag", "value", "words"),
    [
        ("evaluate", "--split", "nonsense", "invalid choice: 'nonsense'"),
        ("evaluate", "--batch_size", "0", "--batch_size: must be a whole number"),
        ("evaluate", "--beam_size", "0", "--beam_size: must be a whole number"),
        ("evaluate", "--alpha", "-1", "--alpha: must be a finite number of at least"),
        ("evaluate", "--alpha", "nan", "--alpha: must be a finite number of at least"),
        ("evaluate", "--checkpoint", "newest", "--checkpoint newest: no such folder"),
        ("translate", "--batch_size", "x", "--batch_size: must be a whole number"),
        ("translate", "--input_file", "absent.en", "absent.en does not exist"),
        ("translate", "--output_file", "absent/o", "cannot write absent/o"),
        ("average", "--last", "0", "--last: must be a whole number of at least 1"),
        ("average", "--last", "99", "--last 99 needs as many checkpoints"),
    ],
)
def test_bad_flags_of_the_other_commands_are_refused(
    trained, command, flag, value, words
):
    before = files(trained.model_dir)
    assert words in refused(command, "--model_dir", trained.model_dir, flag, value)
    assert files(trained.model_dir) == before


@pytest.mark.parametrize("command", ["evaluate", "translate", "average"])
def test_a_folder_without_a_model_is_refused(tmp_path, command):
    line = refused(command, "--model_dir", tmp_path)
    assert line.startswith(f"error: --model_dir {tmp_path} holds no model")
    assert list(tmp_path.iterdir()) == []


def test_a_model_of_another_vocabulary_is_refused(trained_copy):
    shorter = trained_copy.data_dir / "short.model"
    made = trained_copy.data_dir / "encoded"
    arguments = trained_copy.arguments("vocab_size=290")
    data = ("--problem", "files", "--data_dir", trained_copy.data_dir)
    spec = f"{trained_copy.hparams},vocab_size=290"
    assert command_line.run("datagen", *map(str, data), "--hparams", spec).status == 0
    (made / "files.en-de.sentencepiece-290" / "vocab.model").rename(shorter)
    before = files(trained_copy.model_dir)
    assert "vocab_size=300 there, 290 here" in refused("train", *arguments)
    as_text = trained_copy.arguments()[:-1]  # Else progress shares the stream.
    line = refused("train", *as_text, "--vocab_file", shorter)
    assert "holds a model of other settings: vocabulary " in line
    assert files(trained_copy.model_dir) == before


def test_a_damaged_checkpoint_is_refused(trained_copy):
    (path,) = (trained_copy.model_dir / "averaged").glob("weights.data*")
    path.write_bytes(path.read_bytes()[:-100])
    line = refused("evaluate", "--model_dir", trained_copy.model_dir)
    assert "averaged/weights" in line
    assert "use another checkpoint" in line


def test_processes_of_their_own_are_refused_alike(tmp_path):
    for arguments in (
        ("train", "--hparams", "tini"),
        ("evaluate", "--model_dir", str(tmp_path)),
        ("datagen", "--problem", "files", "--data_dir", str(tmp_path)),
    ):
        done = command_line.run_alone(*arguments, cwd=str(tmp_path))
        assert command_line.is_one_clear_line(done), done
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def small_disk(tmp_path):
    """Mounts a disk of some kilobytes, which only root may do."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(size: str) -> Path:
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("this machine does not let root mount a small disk")
        return folder

    yield mount
    while os.path.ismount(folder):
        subprocess.run(["umount", str(folder)], check=True)


# The vocabulary fits none of the first; a checkpoint is about 100 kilobytes.
@pytest.mark.parametrize("size", ["4k", "8k", "64k", "160k"])
def test_a_full_disk_under_the_model_leaves_only_what_is_whole(
    small_disk, trained_copy, size
):
    disk = small_disk(size)
    flags = trained_copy.arguments()
    flags[flags.index("--model_dir") + 1] = str(disk / "model")
    done = command_line.run("train", *flags)
    assert (done.status, done.out) == (2, "")
    last = done.err.splitlines()[-1]
    assert last.startswith("error: ")
    assert "space" in last.lower()
    assert "Traceback" not in done.err
    leftovers = [p for p in disk.rglob("*") if p.name.startswith(".")]
    assert leftovers == []
    for folder in (disk / "model").glob("checkpoints/*"):
        assert (folder / "checkpoint.json").exists()


@pytest.mark.parametrize("size", ["4k", "12k", "128k"])
def test_a_full_disk_under_the_data_leaves_only_what_is_whole(
    small_disk, data_dir, hparams, size
):
    disk = small_disk(size)
    # 20,000 pairs are more than a buffer of the disk, and than the last of the sizes.
    for name in ("train.en", "train.de"):
        text = (data_dir / name).read_bytes()
        (data_dir / name).write_bytes(text * (20_000 // tiny.SIZES["train"]))
    (data_dir / "encoded").symlink_to(disk)
    folders = ("--data_dir", data_dir, "--hparams", hparams)
    line = refused("datagen", "--problem", "files", *folders)
    assert "space" in line.lower()
    assert [p for p in disk.rglob("*") if p.name.startswith(".")] == []
