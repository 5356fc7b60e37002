"""The parts of the comparison with tensor2tensor that need no tensor2tensor."""

import ast
import itertools
import json
import os
import sys

import benchmark_tensor2tensor as benchmark
import numpy as np
import pytest
from benchmarks import same_text

from tests import run_command, tiny

TOOL = "tools/benchmark_tensor2tensor.py"
PEER = run_command.ROOT / "tools/peers/tensor2tensor_speed.py"


def peer_function(name: str):
    """Returns a function of the peer's script, which itself cannot be imported."""
    tree = ast.parse(PEER.read_text("utf-8"))
    definition = next(node for node in tree.body if getattr(node, "name", "") == name)
    wanted = [
        node
        for node in tree.body
        if getattr(node, "module", "") == "__future__" or node is definition
    ]
    names = {"np": np, "itertools": itertools, "SIDES": ("inputs", "targets")}
    exec(compile(ast.Module(wanted, []), name, "exec"), names)
    return names[name]


def test_the_peers_own_reader_gets_the_batches_that_were_written(tmp_path):
    batches = [
        [
            np.array([[5, 6, 1], [7, 1, 0]], np.int32),
            np.array([[8, 1], [9, 1]], np.int32),
        ],
        [np.array([[4, 1]], np.int32), np.array([[3, 2, 9, 1]], np.int32)],
    ]
    np.savez(tmp_path / "batches.npz", **same_text.flat_batches(batches))
    with np.load(tmp_path / "batches.npz") as arrays:
        read = list(peer_function("batches_of")(arrays))
    for batch, (inputs, targets) in zip(read, batches, strict=True):
        np.testing.assert_array_equal(batch["inputs"], inputs, strict=True)
        np.testing.assert_array_equal(batch["targets"], targets, strict=True)


def test_both_programs_cut_sentences_into_the_same_batches():
    inputs = np.array(
        [[5, 6, 7, 1], [5, 6, 1, 0], [7, 8, 1, 0], [9, 1, 0, 0], [1, 0, 0, 0]]
    )
    ours = [batch.numpy().tolist() for batch in same_text.cut_batches(inputs, 2)]
    assert ours == [
        [[5, 6, 7, 1], [5, 6, 1, 0]],
        [[7, 8, 1], [9, 1, 0]],
        [[1]],
    ]
    theirs = peer_function("cut_batches")(inputs, 2)
    assert ours == [batch.tolist() for batch in theirs]


def test_translations_are_compared_by_their_ids():
    ours = {"ids": [[5, 1], [6, 7, 1], [8, 1]], "scores": [-1.0, -2.0, -3.0]}
    theirs = {"ids": [[5, 1], [6, 1], [8, 1]], "scores": [-1.25, -2.75, -3.0]}
    assert benchmark.compare(ours, theirs) == {
        "sentences": 3,
        "identical": 2,
        "largest_score_difference": 0.25,
        "largest_score_difference_of_all": 0.75,
    }


def test_the_table_warns_and_shows_speeds_and_the_rest_of_the_time():
    settings = {"steps": 600, "measure_from": 100, "hparams": "multi30k"}
    part = {"settings": settings, "rounds": {"t2t_repro": [], "tensor2tensor": []}}
    for seconds in ((1.0, 4.0), (3.0, 6.0)):
        for name, each in zip(part["rounds"], seconds, strict=True):
            answer = {"tokens": 600, "seconds": each, "start_seconds": 7.0}
            benchmark._count(part, name, answer)
    assert part["ratio"] == 2.5  # (4 + 6) / (1 + 3)
    machine = {
        "cpus": 2,
        "processor": "P",
        "load_average": 1.5,
        "warning": "load average 1.50: others are running",
    }
    result = {"machine": machine, "versions": ["a 1", "b 2"], "train": part}
    lines = benchmark.table(result).splitlines()
    assert "WARNING: load average 1.50: others are running" in lines
    assert any("steps 101 to 600" in line for line in lines)
    assert ["2", "tensor2tensor", "6.00", "100", "7.0"] in [x.split() for x in lines]
    assert any("2.50 times as fast" in line for line in lines)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ((), "--vocab_file is needed to train"),
        (("--only", "translate"), "--model_dir is needed to translate"),
        (
            ("--only", "train", "--vocab_file", "x.model"),
            f"--t2t_python {sys.executable} has no tensor2tensor; install it there",
        ),
        (
            ("--only=train", "--vocab_file=x", "--steps=2", "--measure_from=2"),
            "--measure_from must be from 0 to --steps - 1",
        ),
    ],
)
def test_what_cannot_be_compared_is_one_clear_line(flags, words):
    where = ("--t2t_python", sys.executable, "--data_dir", ".")
    done = run_command.run(TOOL, *where, *flags)
    assert run_command.is_one_clear_line(done)
    assert words in done.err


@pytest.mark.medium
def test_the_real_tensor2tensor_makes_the_same_translations(trained, tmp_path):
    python = os.environ.get("T2T_PYTHON")
    if not python:
        pytest.skip("T2T_PYTHON names no Python 3.7 that has tensor2tensor 1.15.7")
    (tmp_path / "text").write_text("".join(f"{s}\n" for s, _ in tiny.pairs("test")))
    done = run_command.run(
        TOOL,
        *("--t2t_python", python, "--data_dir", str(tmp_path), "--only", "translate"),
        *(
            "--model_dir",
            str(trained.model_dir),
            "--test_file",
            "text",
            "--json",
            "--batch_size=1",
        ),
    )
    assert done.status == 0, done.err
    found = json.loads(done.out)["translate"]
    # Of one sentence at a time the limits are the same, too.
    assert found["identical"] == found["sentences"] == 6
