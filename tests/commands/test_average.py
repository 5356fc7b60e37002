"""Tests of the command `average`."""

import json

from tests import run_command


def averaged_steps(folder):
    meta = json.loads((folder / "checkpoint.json").read_text(encoding="utf-8"))
    return meta["averaged_steps"]


def test_averages_the_last_checkpoints_in_the_model_directory(trained_copy):
    model_dir = trained_copy.model_dir
    arguments = ("--model_dir", str(model_dir), "--last", "1")
    result = run_command.run("average", *arguments, "--json")
    assert (result.status, result.err) == (0, "")
    checkpoint = str(model_dir / "averaged")
    assert json.loads(result.out) == {"averaged_steps": [4], "checkpoint": checkpoint}
    assert averaged_steps(model_dir / "averaged") == [4]


def test_writes_to_the_output_directory(trained, tmp_path):
    output = tmp_path / "here"
    output.mkdir()
    arguments = ["--model_dir", str(trained.model_dir), "--output_dir", str(output)]
    for last, steps in (("2", [2, 4]), ("1", [4])):
        result = run_command.run("average", *arguments, "--last", last)
        words = ", ".join(map(str, steps))
        assert result == (
            0,
            f"averaged the checkpoints of steps {words} into {output}\n",
            "",
        )
        assert averaged_steps(output) == steps
    assert [path.name for path in tmp_path.iterdir()] == ["here"]
