"""Tests of running the programs of a benchmark in turn."""

import io
import json
import signal
import subprocess
import sys
import time

import pytest
from benchmarks.in_turn import Contender, Process, in_turn, peer_versions

from t2t_repro.system.errors import UserError
from tests import run_command

PEERS = str(run_command.ROOT / "tools" / "benchmarks" / "peers")
COUNTER = f"""
import sys; sys.path.insert(0, {PEERS!r})
from turns import turns
requests = []
for request, answer in turns(memory_before=1000):
    print('noise')
    requests.append(request)
    answer['requests'] = requests
    if request == 'fail':
        sys.exit('no such request')
"""


def contender(name, program=COUNTER):
    return Contender(name, [sys.executable, "-c", program], is_peer=True)


@pytest.mark.parametrize("one_by_one", [False, True])
def test_each_round_runs_all_contenders_in_order(tmp_path, one_by_one):
    rounds = [["x", "y"], ["z"]]
    pair = [contender("a"), contender("b")]
    turns = list(in_turn(pair, rounds, tmp_path, begin=[0], one_by_one=one_by_one))
    assert [(name, request) for name, request, _ in turns] == [
        *(("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"), ("a", "z"), ("b", "z"))
    ]
    requests = [0, "z"] if one_by_one else [0, "x", "y", "z"]
    *_, last = turns
    assert last[2]["requests"] == requests
    assert last[2]["start_seconds"] > last[2]["seconds"] > 0
    assert last[2]["memory"] > 10**6
    assert "noise" in (tmp_path / "a.log").read_text()


def test_finds_the_instruction_sets_in_a_log(tmp_path):
    # Lines of oneDNN 3.7 and 3.1, CTranslate2 4.8 and MKL 2025.
    lines = (
        "[2026-11-26 23:13:41.987] [ctranslate2] [info]  - Selected ISA: AVX2",
        "onednn_verbose,v1,info,cpu,isa:Intel AVX2",
        "onednn_verbose,info,cpu,isa:Intel AVX-512",
        "MKL_VERBOSE oneMKL 2025 for Intel(R) 64 architecture Intel(R) AVX2, Lnx 2 GHz",
    )
    shown = []
    for logged in ((), lines[1:2], lines):
        text = "".join(f"{line}\n" for line in logged)
        program = f"import sys; sys.stderr.write({text!r}){COUNTER}"
        turns = in_turn([contender("a", program)], [["x"]], tmp_path, begin=[0])
        shown.append(next(turns)[2]["instructions"])
    assert shown == [
        "",
        "oneDNN: Intel AVX2",
        "CTranslate2: AVX2, oneDNN: Intel AVX2, MKL: Intel(R) AVX2",
    ]


def test_answers_each_request_for_steps():
    program = (
        f"import sys; sys.path.insert(0, {PEERS!r})\n"
        "from turns import steps\n"
        "count = sum(1 for _ in steps(0))\n"
        "print(count)\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", program],
        input="2\n0\n3\n",
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    answers = [json.loads(line) for line in io.StringIO(process.stdout)]
    assert len(answers) == 3
    assert process.stderr == "5\n"


def test_error_has_the_last_line_of_a_failed_program(tmp_path, capsys):
    with (
        Process(contender("the peer"), tmp_path) as process,
        pytest.raises(UserError, match=r"^the peer failed: no such request$"),
    ):
        process.ask("fail")
    nobody = Contender("nobody", ["/no/python"])
    with pytest.raises(UserError, match=r"^/no/python: No such file"):
        Process(nobody, tmp_path)


def test_rejects_an_interpreter_without_the_package():
    versions = peer_versions(sys.executable, "--python", "numpy")
    assert versions.startswith("numpy 2.")
    assert f"Python {sys.version.split()[0]}" in versions
    with pytest.raises(UserError, match=r"^--x .*: OpenNMT-tf is not installed"):
        peer_versions(sys.executable, "--x", "OpenNMT-tf")
    with pytest.raises(UserError, match=r"^--x /no/python: No such file"):
        peer_versions("/no/python", "--x", "torch")


@pytest.mark.medium
def test_prints_the_figures_so_far_after_ctrl_c():
    tool = "tools/benchmarks/benchmark_training.py"
    flags = "--sizes=tiny,base --batch_size=4 --length=8 --vocab_size=100 --steps=1"
    flags += " --only=products --precision=float32 --rounds=1000000 --json"
    process = run_command.start(tool, *flags.split())
    while "round 3:" not in process.stderr.readline():
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    table, ratios = json.loads(out)["tables"].values()
    assert len(table["matmuls only float32"]["ms"]) >= 3
    assert ratios == {}
