"""The timing beside Transformers and CTranslate2 on one OPUS-MT model, a small one."""

import json
import sys
from importlib.util import find_spec

import pytest

from tests import run_command

TOOL = "tools/benchmark_opus_mt.py"
SMALL = "--d_model=64 --num_layers=1 --vocab_size=1100 --length=5 --steps=9"
SMALL += " --batch_size=3 --sentences=2 --rounds=1"


@pytest.mark.medium
@pytest.mark.skipif(not find_spec("transformers"), reason="needs Transformers")
def test_all_programs_run_and_ours_translates_as_transformers():
    flags = ["--peers_python", sys.executable, *SMALL.split(), "--json"]
    done = run_command.run_alone(TOOL, *flags)
    assert done.status == 0, done.err
    found = json.loads(done.out)["programs"]
    names = ("t2t_repro", "t2t_repro, XLA", "Transformers", "CTranslate2")
    assert tuple(found) == names
    kinds = {"a batch of 3 alone": [3, 3], "a sentence alone": [2, 2]}
    for name, each in found.items():
        assert each["tokens_per_second"].keys() == kinds.keys()
        assert each["tokens_per_processor_second"].keys() == kinds.keys()
        assert min(min(speeds) for speeds in each["tokens_per_second"].values()) > 0
        assert each["peak_memory"] > 10**8
        assert each.get("same") == (kinds if name.startswith("t2t_repro") else None)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ([], "--peers_python"),
        (["--peers_python", "/no/such"], "--peers_python /no/such: No such file"),
        (["--peers_python", "x", "--d_model", "100"], "must be a multiple of 64"),
        (["--peers_python", "x", "--vocab_size", "9"], "must be at least 1001"),
    ],
)
def test_flags_are_checked(flags, words):
    done = run_command.run(TOOL, *flags)
    assert run_command.is_one_clear_line(done)
    assert words in done.err
