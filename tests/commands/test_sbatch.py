"""The example script for Slurm requeues its job; Slurm's commands are simulated.

The fake `srun` starts two tasks on this machine with Slurm's variables, sends a
signal to one of them, and exits with the highest status, as Slurm's documentation
states. The fake `scontrol` records its calls.
"""

import os
import subprocess
import sys

import pytest

from tests import run_command, tiny

SCRIPT = run_command.ROOT / "docs" / "how_to" / "big.sbatch"
# Enough steps for every signal to arrive long before the end of training.
STEPS = 150
# The warm-up is longer, so that the model is not scored.
SETTINGS = f"train_steps={STEPS},warmup_steps={STEPS + 1},checkpoint_steps=50"
SETTINGS += ",dropout=0.1,average_last=1"


def srun():
    """Returns a substitute for Slurm's srun."""
    return f"""#!{sys.executable}
import os, signal, subprocess, sys
at = sys.argv.index("python")
assert sys.argv[1:at] == ["--cpus-per-task=4", "--kill-on-bad-exit=0"], sys.argv
tasks = []
for task in ("0", "1"):
    step = dict(STEP_NUM_TASKS="2", STEP_NUM_NODES="1", STEP_NODELIST="localhost",
                STEP_TASKS_PER_NODE="2", PROCID=task, LOCALID=task)
    environment = os.environ | {{f"SLURM_{{name}}": v for name, v in step.items()}}
    command = [sys.executable, *sys.argv[at + 1:]]
    pipe = subprocess.PIPE if task == "0" else None
    tasks.append(subprocess.Popen(command, env=environment, stdout=pipe, text=True))
number, task, text = os.environ["DISTURB"].split(",")
for line in tasks[0].stdout:
    print(line, end="", flush=True)
    if text in line:
        tasks[int(task)].send_signal(getattr(signal, number))
ends = [task.wait() for task in tasks]
print("statuses", *ends)
sys.exit(max(end if end >= 0 else 128 - end for end in ends))
"""


SCONTROL = """#!/bin/bash
echo "$@" >> "$REQUEUED"
"""
SQUEUE = """#!/bin/bash
echo "${STATE:-RUNNING}"
"""


def in_slurm(folder, script, srun):
    """Returns a function that runs a script as Slurm would.

    Its result is the exit status, the number of requeues and the output.
    """
    programs = {"srun": srun, "scontrol": SCONTROL, "squeue": SQUEUE}
    for name, text in {"script": script, **programs}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    requeued = folder / "requeued"
    requeued.touch()

    def batch(restarts, disturb=""):
        environment = os.environ | {
            "PATH": f"{folder}:{os.environ['PATH']}",
            "PYTHONPATH": str(run_command.ROOT),
            "SLURM_JOB_ID": str(os.getpid() % 10_000),
            "SLURM_CPUS_PER_TASK": "4",
            "SLURM_RESTART_COUNT": str(restarts),
            "DISTURB": disturb,
            "REQUEUED": str(requeued),
        }
        process = subprocess.run(
            ["bash", "script"],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=240,
        )
        calls = len(requeued.read_text().splitlines())
        return process.returncode, calls, process.stdout + process.stderr

    return batch


@pytest.mark.parametrize(
    ("status", "restarts", "calls"),
    [(0, 0, 0), (2, 0, 0), (75, 0, 1), (130, 0, 1), (137, 99, 1), (137, 100, 0)],
)
def test_requeues_only_jobs_that_can_resume_and_a_limited_number_of_times(
    tmp_path, status, restarts, calls
):
    srun = f"#!/bin/bash\nexit {status}\n"
    batch = in_slurm(tmp_path, SCRIPT.read_text(encoding="utf-8"), srun)
    assert batch(restarts)[:2] == (status, calls)


@pytest.mark.parametrize(("state", "calls"), [("RUNNING", 1), ("COMPLETING", 0)])
def test_a_signal_to_the_script_requeues_the_job_unless_it_was_canceled(
    tmp_path, monkeypatch, state, calls
):
    monkeypatch.setenv("STATE", state)
    srun = "#!/bin/bash\nkill -TERM $PPID\nexit 143\n"
    batch = in_slurm(tmp_path, SCRIPT.read_text(encoding="utf-8"), srun)
    assert batch(0)[:2] == (143, calls)


@pytest.mark.medium
def test_the_example_resumes_after_a_timeout_and_a_killed_chief(tmp_path):
    tiny.write_corpus(tmp_path / "data")
    hparams = tiny.write_hparams(tmp_path)
    text = SCRIPT.read_text(encoding="utf-8").replace("/shared/models/big", "model")
    text = text.replace("/shared/data", "data").replace(
        "--hparams big", f"--hparams {hparams},{SETTINGS}"
    )
    batch = in_slurm(tmp_path, text, srun())
    # --signal=TERM@180 sends SIGTERM to all tasks, but one that receives it is enough.
    status, calls, output = batch(0, f"SIGTERM,1,step 50/{STEPS}")
    assert (status, calls) == (130, 1), output
    assert "statuses 130 130" in output
    line = "saved a checkpoint; run the same command to resume"
    assert output.count(line) == 2
    status, calls, output = batch(1, f"SIGKILL,0,step 100/{STEPS}")
    assert (status, calls) == (137, 2), output
    assert "resuming from step" in output
    assert "error: another worker of this training has ended" in output
    status, calls, output = batch(2, "SIGTERM,0,never")
    assert (status, calls) == (0, 2), output
    assert f"step {STEPS}/{STEPS}" in output
    assert "Traceback" not in output
