"""Tests of the list of commands and of the list of hyper-parameters."""

import dataclasses
import json
import re

import pytest

from t2t_repro.command_line.command_list import find_commands
from t2t_repro.hparams import HParams
from tests import run_command


def test_lists_the_commands_of_the_reference_with_the_first_lines_of_their_help():
    page = (run_command.ROOT / "docs/reference/index.md").read_text(encoding="utf-8")
    names = re.findall(r"^\| `python -m t2t_repro\.(\w+)`", page, re.MULTILINE)
    result = run_command.run("__main__", "--json")
    assert (result.status, result.err) == (0, "")
    commands = json.loads(result.out)
    assert sorted(names) == list(commands)
    assert commands["train"] == "Trains a Transformer by the paper's whole procedure."
    lines = run_command.run("__main__").out.splitlines()
    for line, (name, text) in zip(lines, commands.items(), strict=True):
        assert line.split(maxsplit=3) == ["python", "-m", f"t2t_repro.{name}", text]
        assert text.endswith(".")


def test_the_name_of_a_command_is_answered_with_its_module():
    result = run_command.run("__main__", "train", "--hparams", "tiny")
    assert result.err == "error: a command is a module: run python -m t2t_repro.train\n"
    result = run_command.run("__main__", "trian")
    assert result.err == "error: no command is called 'trian'; did you mean 'train'?\n"
    assert result.status == 2


@pytest.mark.parametrize("command", find_commands())
def test_help_prints_each_default_once(command):
    words = " ".join(run_command.run(command, "--help").out.split())
    assert not re.search(r"\(default: [^()]*\) \(default: ", words)


def test_train_lists_all_hyper_parameters_with_bounds_and_meaning():
    result = run_command.run("train", "--list_hparams")
    assert (result.status, result.err) == (0, "")
    heads = [line for line in result.out.splitlines() if not line.startswith(" ")]
    fields = [field.name for field in dataclasses.fields(HParams)]
    assert [head.partition("=")[0] for head in heads] == fields
    for head in (
        "d_model=512 (int from 1)",
        "d_k=null (int from 1 or null)",
        "dropout=0.1 (float from 0, below 1)",
        "alpha=0.6 (float from 0 to 10)",
        "xla=auto (bool or auto)",
        "norm=post (post or pre)",
        "softmax_bias=false (bool)",
    ):
        assert head in heads


def test_train_describes_one_hyper_parameter():
    result = run_command.run("train", "--list_hparams", "warmup_steps")
    assert result.out == (
        "warmup_steps=4000 (int from 1)\n"
        "    Steps of learning rate warm-up. (paper section 5.3)\n"
    )
