"""Tests of failing system calls, and of the rules by which a case is a fault."""

import shutil
import sys

import pytest
from call_faults.operations import Operation
from fail_calls import (
    FAULT,
    Outcome,
    compare,
    find_damage,
    read_outcomes,
    write_outcomes,
)
from fail_calls import snapshot as take_snapshot

from t2t_repro.serving.digests import add_digests
from tests import run_command

OPERATION = Operation("command", ("out/*",))
BEFORE = {"out/1/a": b"old", "log": b"1"}
DONE = {"out/1/a": b"new", "out/2/a": b"x", "out/2/b": b"y", "log": b"12"}


@pytest.mark.parametrize(
    ("after", "damage"),
    [
        (BEFORE, ""),
        (DONE, ""),
        (BEFORE | {".out.1.tmp": b"x", "text.partial": b"x"}, ""),
        (BEFORE | {"m/training_log.tsv": b"x", "m/training.lock": b"host"}, ""),
        (BEFORE | {"out/1/a": b"ne"}, "half-written out/1/a"),
        (BEFORE | {"out/3": b""}, "half-written out/3"),
        (BEFORE | {"out/2/a": b"x"}, "out/2 without out/2/b"),
        (DONE | {"out/3": b""}, "half-written out/3"),
    ],
)
def test_names_the_damaged_file(after, damage):
    assert find_damage(OPERATION, BEFORE, after, DONE) == damage


def test_temporary_files_may_be_left_by_a_failed_deletion_only():
    left = DONE | {"out/.writing-3/a": b"x"}
    assert compare(DONE, DONE, False) == compare(left, DONE, True) == ""
    assert compare(left, DONE, False) == "out/.writing-3/a differs"
    assert compare(BEFORE, DONE, True) == "log differs"


def test_a_snapshot_has_no_times_and_no_version(tmp_path):
    for name in ("export/2/model", "tensorboard/events"):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x")
    text = '{"step": 4, "saved_at": 1.5, "sha256": "ab"}'
    (tmp_path / "checkpoint.json").write_text(text)
    assert take_snapshot(tmp_path) == {
        "export": b"",
        "export/1": b"",
        "export/1/model": b"x",
        "checkpoint.json": {"step": 4},
    }


def test_a_snapshot_of_an_export_is_that_of_another_graph_unless_it_is_damaged(
    tmp_path,
):
    def export(graph):
        shutil.rmtree(tmp_path / "export", ignore_errors=True)
        folder = tmp_path / "export" / "1"
        (folder / "assets.extra").mkdir(parents=True)
        (folder / "assets.extra" / "README.md").write_text("# model\n")
        (folder / "saved_model.pb").write_bytes(graph)
        add_digests(folder, "model", "saved_model")
        return folder

    export(b"one")
    whole = take_snapshot(tmp_path)
    folder = export(b"two")
    assert take_snapshot(tmp_path) == whole
    (folder / "saved_model.pb").write_bytes(b"tw")
    assert take_snapshot(tmp_path) == whole | {"export/1/saved_model.pb": b"tw"}


def test_outcomes_are_read_back(tmp_path):
    outcomes = {
        ("average", "EIO", 3): Outcome("refused", "open a", 0.5, "error: a: it failed"),
        ("datagen", "ENOSPC", 12): Outcome(FAULT, "write b", 1.0, "b differs"),
    }
    write_outcomes(tmp_path / "table.tsv", outcomes)
    assert read_outcomes(tmp_path / "table.tsv") == outcomes


@pytest.mark.medium
def test_failed_calls_leave_whole_files(tmp_path):
    path = tmp_path / "calls.tsv"
    flags = ["--only", "average,datagen", "--every", "25", "--sample", "1"]
    process = run_command.run_alone(
        "tools/fail_calls.py", "--output", str(path), *flags, python=sys.executable
    )
    assert process.status == 0, process.out + process.err
    outcomes = read_outcomes(path)
    assert len(outcomes) >= 10
    kinds = {outcome.kind for outcome in outcomes.values()}
    assert "refused" in kinds
    assert not {FAULT, "not reached"} & kinds
    assert all(outcome.call for outcome in outcomes.values())
