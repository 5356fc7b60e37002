"""Mistakes of users are one-line errors and leave no incomplete files."""

import gc
import io
import json
import os
import runpy
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from t2t_repro.fast import int8_matmul
from tests import forks, run_command, tiny
from tests.commands import bad_inputs
from tests.commands.bad_inputs import Bad, World

TABLE = bad_inputs.table()
COMMANDS = sorted({bad.command for bad in TABLE if "/" not in bad.command})


@pytest.fixture
def data_dir(tmp_path):
    return tiny.write_corpus(tmp_path / "data")


@pytest.fixture
def hparams(tmp_path):
    return tiny.write_hparams(tmp_path)


@pytest.fixture(scope="module")
def unchanged_world(trained, tmp_path_factory):
    """Returns a trained model with its data and a folder of invalid files."""
    return make_world(trained, tmp_path_factory.mktemp("unchanged") / "world")


def make_world(trained, folder) -> World:
    world = World(trained.copy_to(folder).folder)
    path = world.model / "model.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    values["data_dir"] = str(world.data.resolve())
    path.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
    bad_inputs.write_odd_files(world.odd)
    world.here.mkdir()
    return world


def contents(folder):
    """Returns all paths with the bytes of files and the targets of links."""

    def content(path):
        if path.is_symlink():
            return os.readlink(path)
        return path.read_bytes() if path.is_file() else None

    return {str(path): content(path) for path in sorted(folder.rglob("*"))}


def row_id(bad: Bad) -> str:
    return f"{bad.command} {bad.flags} {bad.change}"


def check(bad: Bad, world: World, run) -> None:
    """Checks that a mistake is a one-line error and changes no files."""
    bad.apply_change(world)
    before = contents(world.root)
    result = run(bad.command, *bad.arguments(world), stdin=bad.stdin(world))
    check_result(bad, world, result, before)


def check_result(bad: Bad, world: World, result: run_command.Done, before) -> None:
    assert run_command.is_one_clear_line(result), result
    assert world.filled(bad.words) in result.err
    assert contents(world.root) == before


@pytest.mark.parametrize("bad", TABLE, ids=row_id)
def test_every_mistake_in_the_table_is_a_one_line_error(
    bad, trained, unchanged_world, tmp_path, monkeypatch
):
    if "--precision int8" in bad.flags and int8_matmul.unsupported_reason():
        pytest.skip(f"{int8_matmul.unsupported_reason()}: float32 needs no calibration")
    world = make_world(trained, tmp_path / "world") if bad.change else unchanged_world
    monkeypatch.chdir(world.here)
    check(bad, world, run_command.run)


def run_as_main(folder, text, command, arguments):
    """Runs a command in a folder with a text on standard input, like `python -m`."""
    os.chdir(folder)
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode("ascii")))
    sys.argv = [command, *arguments]
    runpy.run_module(f"t2t_repro.{command}", run_name="__main__", alter_sys=True)


@pytest.mark.medium
def test_separate_processes_print_the_same_errors(trained, tmp_path):
    """Compares the first mistake of each command."""
    mistakes = [next(b for b in TABLE if b.command == name) for name in COMMANDS]
    worlds = [make_world(trained, tmp_path / name) for name in COMMANDS]
    calls = []
    for bad, world in zip(mistakes, worlds, strict=True):
        bad.apply_change(world)
        text = bad.stdin(world).decode("ascii")
        arguments = bad.arguments(world)
        calls.append((str(world.here), text, bad.command, arguments))
    before = [contents(world.root) for world in worlds]
    results = forks.run(run_as_main, *calls)
    for each in zip(mistakes, worlds, results, before, strict=True):
        check_result(*each)


def test_table_has_five_mistakes_per_command_and_sixty_in_total():
    modules = (run_command.ROOT / "t2t_repro").glob("*.py")
    runnable = {
        path.stem
        for path in modules
        if "\n    cli.run(main)\n" in path.read_text(encoding="utf-8")
    }
    counts = Counter(bad.command for bad in TABLE)
    assert set(COMMANDS) == runnable - {"__main__"}
    assert all(counts[command] >= 5 for command in COMMANDS)
    assert len(TABLE) >= 60
    assert len(set(map(row_id, TABLE))) == len(TABLE)


def run_and_fail(command, *arguments):
    """Runs a command that must print a one-line error; returns the line."""
    result = run_command.run(command, *map(str, arguments))
    assert run_command.is_one_clear_line(result), result
    return result.err.removesuffix("\n")


def files(folder):
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def remove(path):
    path.unlink()


def shorten(path):
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:-1]), encoding="utf-8")


def empty(path):
    path.write_bytes(b"")


def write_latin1(path):
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
        (write_latin1, "{path}:3:2: byte 0xfc is not valid UTF-8"),
    ],
)
def test_rejects_bad_text_files_before_writing(
    tmp_path, data_dir, hparams, name, damage, words
):
    path = data_dir / name
    damage(path)
    before = files(tmp_path)
    languages = ("--source_lang", "en", "--target_lang", "de")
    line = run_and_fail(
        "train",
        *("--hparams", hparams, "--data_dir", data_dir, *languages),
        *("--model_dir", tmp_path / "model"),
    )
    fewer = tiny.SIZES[path.stem] - 1
    expected = words.format(path=path, fewer=fewer)
    # The message may name either file of a pair first.
    assert expected in line or (damage is shorten and f"{path} has {fewer}" in line)
    assert files(tmp_path) == before
    assert not (tmp_path / "model").exists()
    assert not (data_dir / "encoded").exists()


def test_rejects_a_model_with_another_vocabulary(trained_copy):
    shorter = trained_copy.data_dir / "short.model"
    encoded = trained_copy.data_dir / "encoded"
    arguments = trained_copy.arguments("vocab_size=290")
    data = ("--problem", "files", "--data_dir", trained_copy.data_dir)
    spec = f"{trained_copy.hparams},vocab_size=290"
    assert run_command.run("datagen", *map(str, data), "--hparams", spec).status == 0
    (encoded / "files.en-de.sentencepiece-290" / "vocab.model").rename(shorter)
    before = files(trained_copy.model_dir)
    assert "vocab_size was 300, is now 290" in run_and_fail("train", *arguments)
    # Without --json, progress is not written to standard error.
    as_text = trained_copy.arguments()[:-1]
    line = run_and_fail("train", *as_text, "--vocab_file", shorter)
    assert "holds a model with other settings: vocabulary " in line
    assert files(trained_copy.model_dir) == before


@pytest.fixture
def small_disk(tmp_path):
    """Returns a function that mounts a disk of the given size; requires root."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk requires root")
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(size: str) -> Path:
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("this machine does not allow mounting a small disk")
        return folder

    yield mount
    gc.collect()  # Closes files that the command left open in this process.
    while os.path.ismount(folder):
        subprocess.run(["umount", str(folder)], check=True)


# The smallest disks cannot store the vocabulary; a checkpoint has about 100 kB.
@pytest.mark.parametrize(
    "size",
    ["4k", "8k", *(pytest.param(s, marks=pytest.mark.medium) for s in ("64k", "160k"))],
)
def test_a_full_model_disk_leaves_only_complete_files(small_disk, trained_copy, size):
    disk = small_disk(size)
    flags = trained_copy.arguments()
    flags[flags.index("--model_dir") + 1] = str(disk / "model")
    result = run_command.run("train", *flags)
    assert (result.status, result.out) == (2, "")
    last = result.err.splitlines()[-1]
    assert last.startswith("error: ")
    assert "space" in last.lower()
    assert "Traceback" not in result.err
    leftovers = [p for p in disk.rglob("*") if p.name.startswith(".")]
    assert leftovers == []
    for folder in (disk / "model").glob("checkpoints/*"):
        assert (folder / "checkpoint.json").exists()


@pytest.mark.parametrize("size", ["4k", "12k", "128k"])
def test_a_full_data_disk_leaves_only_complete_files(
    small_disk, data_dir, hparams, size
):
    disk = small_disk(size)
    # 20,000 pairs need more space than the write buffer and the largest disk.
    for name in ("train.en", "train.de"):
        text = (data_dir / name).read_bytes()
        (data_dir / name).write_bytes(text * (20_000 // tiny.SIZES["train"]))
    (data_dir / "encoded").symlink_to(disk)
    folders = ("--data_dir", data_dir, "--hparams", hparams)
    line = run_and_fail("datagen", "--problem", "files", *folders)
    assert "space" in line.lower()
    assert [p for p in disk.rglob("*") if p.name.startswith(".")] == []
