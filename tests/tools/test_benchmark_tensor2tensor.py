"""The parts of the comparison with tensor2tensor that need no tensor2tensor."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.system.errors import UserError
from t2t_repro.training.step import StepResult

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


benchmark = load("benchmark_tensor2tensor")
worker = load("benchmark_worker")


def peer_function(name: str):
    """Returns a function of the peer's script, which itself cannot be imported."""
    tree = ast.parse((TOOLS / "peers/tensor2tensor_multi30k.py").read_text("utf-8"))
    definition = next(node for node in tree.body if getattr(node, "name", "") == name)
    wanted = [
        node
        for node in tree.body
        if getattr(node, "module", "") == "__future__" or node is definition
    ]
    names = {"np": np, "PAD": 0, "EOS": 1}
    exec(compile(ast.Module(wanted, []), name, "exec"), names)
    return names[name]


def test_the_peers_own_reader_gets_the_batches_that_were_written(tmp_path):
    batches = [
        {
            "inputs": np.array([[5, 6, 1], [7, 1, 0]], np.int32),
            "targets": np.array([[8, 1], [9, 1]], np.int32),
        },
        {
            "inputs": np.array([[4, 1]], np.int32),
            "targets": np.array([[3, 2, 9, 1]], np.int32),
        },
    ]
    np.savez(tmp_path / "batches.npz", **worker.flat_batches(batches))
    with np.load(tmp_path / "batches.npz") as arrays:
        for side in ("inputs", "targets"):
            read = peer_function("read_batches")(arrays, side, 2)
            assert [ids.tolist() for ids in read] == [b[side].tolist() for b in batches]
            assert all(ids.dtype == np.int32 for ids in read)


def test_both_programs_cut_sentences_into_the_same_batches():
    inputs = np.array(
        [[5, 6, 7, 1], [5, 6, 1, 0], [7, 8, 1, 0], [9, 1, 0, 0], [1, 0, 0, 0]]
    )
    ours = [batch.numpy().tolist() for batch in worker.cut_batches(inputs, 2)]
    assert ours == [
        [[5, 6, 7, 1], [5, 6, 1, 0]],
        [[7, 8, 1], [9, 1, 0]],
        [[1]],
    ]
    theirs = peer_function("cut_batches")(inputs, 2)
    assert ours == [batch.tolist() for batch in theirs]


def test_the_clock_counts_the_seconds_and_tokens_after_the_first_steps(monkeypatch):
    now = iter([10.0, 14.0, 15.0, 17.0])  # its making, then three steps
    monkeypatch.setattr(worker, "time", SimpleNamespace(perf_counter=lambda: next(now)))
    clock = worker.StepClock(train_steps=3, measure_from=1)
    for step, (loss, tokens) in enumerate([(6.0, 100), (5.0, 70), (1.0, 80)], 1):
        values = (loss, tokens, 0.9, 1.0, 0.1)
        clock.step_done(step, StepResult(*map(tf.constant, map(float, values))))
    assert clock.result() == {
        "command": "train",
        "steps": 3,
        "measured_steps": 2,
        "seconds": 3.0,
        "seconds_per_step": 1.5,
        "target_tokens": 150,
        "tokens_per_second": 50.0,
        "losses": [[3, 4.0]],
    }


def test_outputs_of_different_width_are_compared_by_their_ids():
    ours = {
        "ids": np.array([[5, 1, 0], [6, 7, 1], [8, 1, 0]]),
        "scores": np.array([-1.0, -2.0, -3.0]),
    }
    theirs = {
        "ids": np.array([[5, 1], [6, 1], [8, 1]]),
        "scores": np.array([-1.25, -2.75, -3.0]),
    }
    assert benchmark.compare(ours, theirs) == {
        "sentences": 3,
        "identical": 2,
        "largest_score_difference": 0.25,
        "largest_score_difference_of_all": 0.75,
    }


def one(seconds: float) -> dict:
    return {
        "seconds": seconds,
        "wall_seconds": seconds + 7,
        "tokens_per_second": 600 / seconds,
        "tensorflow": "x",
        "losses": [[50, 2.0]],
    }


def test_the_ratio_is_of_the_seconds_of_all_rounds():
    rounds = [
        {"t2t_repro": one(1.0), "tensor2tensor": one(4.0)},
        {"t2t_repro": one(3.0), "tensor2tensor": one(6.0)},
    ]
    assert benchmark.summary(rounds)["ratio"] == 2.5  # (4 + 6) / (1 + 3)


def test_the_table_warns_and_shows_speeds_and_the_rest_of_the_time():
    train = benchmark.summary([{"t2t_repro": one(2.0), "tensor2tensor": one(3.0)}])
    train |= {"steps": 600, "measure_from": 100, "hparams": "multi30k"}
    machine = {
        "cpus": 2,
        "processor": "P",
        "load_average": 1.5,
        "warning": "load average 1.50: others are running",
        "t2t_repro": "1",
        "tensor2tensor": "2",
        "python": {"t2t_repro": "3", "tensor2tensor": "4"},
    }
    lines = benchmark.table({"machine": machine, "train": train}).splitlines()
    assert "WARNING: load average 1.50: others are running" in lines
    assert any("steps 101 to 600" in line for line in lines)
    assert ["1", "tensor2tensor", "3.00", "200", "7.0"] in [x.split() for x in lines]
    assert any("1.50 times as fast" in line for line in lines)


def test_a_python_without_tensor2tensor_is_one_clear_line():
    with pytest.raises(UserError, match="has no tensor2tensor; install"):
        benchmark.main(
            [
                *("--t2t_python", sys.executable, "--data_dir", "."),
                *("--only", "train", "--vocab_file", "x.model"),
            ]
        )


def test_a_part_without_its_flag_is_refused_before_anything_runs(capsys):
    with pytest.raises(SystemExit, match="2"):
        benchmark.main(["--t2t_python", "python", "--data_dir", "."])
    assert "--vocab_file is needed to train" in capsys.readouterr().err
