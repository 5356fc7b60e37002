"""Tests of the compilation cache."""

import os
import re
import subprocess
import sys

import pytest

from t2t_repro.system.errors import UserError
from t2t_repro.training import compile_cache
from tests.run_command import ROOT

# Creates some tensors, as restoring a checkpoint does, and runs a step.
PROGRAM = """
import hashlib, sys
from pathlib import Path
from t2t_repro.training.compile_cache import compile_cache, trace

with compile_cache(Path(sys.argv[1]), print):
    import tensorflow as tf
    from tests.training import toy

    for number in range(int(sys.argv[2])):
        tf.constant([number])
    # XLA compiles this step in two thirds of the time of one with dropout.
    hparams = toy.HPARAMS.replace(dropout=0.0, attention_dropout=0.0, ffn_dropout=0.0)
    loop = toy.loop(None, hparams.replace(xla=True))
    trace(loop.update)
    loop.update(toy.batch(1), tf.constant(0))
bits = b"".join(weight.numpy().tobytes() for weight in loop.weights.values())
print(hashlib.sha256(bits).hexdigest())
"""


@pytest.fixture(autouse=True)
def own_environment(monkeypatch):
    """Removes XLA's flags, and restores them after the test."""
    for name in ("TF_XLA_FLAGS", "XLA_FLAGS"):
        monkeypatch.setenv(name, "")


def opened(folder, device="NVIDIA H200", version="2.21.0", **settings):
    """Uses the cache once on a device; returns its log line and XLA's two flags."""
    lines = []
    with pytest.MonkeyPatch.context() as patch:
        for name in ("TF_XLA_FLAGS", "XLA_FLAGS"):
            patch.setenv(name, "")
        patch.setattr(compile_cache, "driver_devices", lambda: [(device, 1)])
        patch.setattr(compile_cache.metadata, "version", lambda name: version)
        with compile_cache.compile_cache(folder, lines.append, **settings):
            flags = os.environ["TF_XLA_FLAGS"], os.environ["XLA_FLAGS"]
            for path in re.findall("dump_autotune_results_to='([^']*)'", flags[1]):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(f"measured on {device}")
    assert len(lines) == 1
    return lines[0], *flags


def test_each_device_version_and_set_of_flags_has_its_own_folder(tmp_path):
    first = opened(tmp_path)[1]
    assert opened(tmp_path)[1] == first
    others = [
        opened(tmp_path, device="NVIDIA A100")[1],
        opened(tmp_path, version="2.20.0")[1],
        opened(tmp_path, deterministic=True)[1],
    ]
    folders = sorted(path.name for path in tmp_path.iterdir())
    assert len({first, *others}) == len(folders) == 4
    assert folders[0].startswith("tensorflow-2.20.0-NVIDIA_H200-")
    assert folders[1].startswith("tensorflow-2.21.0-NVIDIA_A100-")


def test_programs_of_other_devices_are_ignored_with_one_line(tmp_path):
    line = opened(tmp_path, device="NVIDIA A100")[0]
    (other,) = tmp_path.iterdir()
    assert line == f"--compile_cache: 0 compiled programs in {other}"
    line = opened(tmp_path)[0]
    ignoring = f"; ignoring those of other devices or versions ({other.name})"
    assert line.endswith(ignoring)
    # Later, the device has a folder as well.
    assert "ignoring" not in opened(tmp_path)[0]


def test_measured_kernels_are_used_by_the_next_run(tmp_path):
    assert "load_autotune_results_from" not in opened(tmp_path)[2]
    (folder,) = tmp_path.iterdir()
    kept = folder / compile_cache.KERNELS_FILE
    assert kept.read_text(encoding="utf-8") == "measured on NVIDIA H200"
    assert f"--xla_gpu_load_autotune_results_from='{kept}'" in opened(tmp_path)[2]


def test_a_truncated_program_is_removed(tmp_path):
    opened(tmp_path)
    (folder,) = tmp_path.iterdir()
    # A field of 3 bytes and one of 200 bytes, whose length has two digits.
    program = b"\x0a\x03abc\x1a\xc8\x01" + bytes(200)
    names = ("whole.pb", "short.pb", "length.pb", "field.pb", "empty.pb", "tmp.tmp")
    for name, end in zip(names, (208, 207, 7, 5, 0, 6), strict=True):
        (folder / name).write_bytes(program[:end])
    assert opened(tmp_path)[0].startswith("--compile_cache: 2 compiled programs in")
    left = sorted(path.name for path in folder.glob("*.*"))
    assert left == ["autotune.txt", "field.pb", "tmp.tmp", "whole.pb"]


def test_only_the_owner_can_read_and_replace_programs(tmp_path):
    opened(tmp_path / "new" / "cache")
    (folder,) = (tmp_path / "new" / "cache").iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700


def test_an_unusable_folder_is_one_error(tmp_path):
    (tmp_path / "file").write_text("")
    for name, words in (("file", "file: Not a directory"), ("it's", "path without '")):
        with pytest.raises(UserError, match=words):
            opened(tmp_path / name)


@pytest.mark.medium
def test_a_second_start_compiles_nothing(tmp_path):
    """Two processes share a new cache; a third one has the kernels of a GPU as well."""
    both = [start(tmp_path / "in a folder", earlier=0) for _ in range(2)]
    (_, one, compiled), (_, other, compiled_too) = map(finish, both)
    assert one == other
    # The slower process may find the program of the other.
    assert compiled or compiled_too
    (folder,) = (tmp_path / "in a folder").iterdir()
    assert len(list(folder.glob("*.pb"))) == 1
    (folder / compile_cache.KERNELS_FILE).write_text("unused on a CPU")
    # TensorFlow aborts on an unknown flag, so this also checks all flags.
    again = finish(start(tmp_path / "in a folder", earlier=1000))
    assert again == ("1", one, 0)


def start(folder, earlier):
    """Starts `PROGRAM` on the CPU; its compiler logs each compilation."""
    names = {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    names |= {"TF_CPP_MIN_LOG_LEVEL": "0"}
    names |= {"TF_CPP_VMODULE": "xla_device_compiler_client=2"}
    # Halves the time of compilation.
    names |= {"XLA_FLAGS": "--xla_backend_optimization_level=0"}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), str(earlier)],
        env=os.environ | names,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    """Returns the program count of the log line, a digest and the compilations."""
    out, err = process.communicate()
    assert process.returncode == 0, err[-2000:]
    line, digest = out.splitlines()
    found = line.removeprefix("--compile_cache: ").partition(" ")[0]
    return found, digest, err.count("Compiling to xla::LocalExecutable")
