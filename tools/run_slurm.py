"""Runs the Slurm example in a real Slurm and interrupts it in several ways.

    python tools/run_slurm.py [--ways limit,group,requeue,crash]

A Slurm of its own, with two nodes in Linux namespaces of this machine, runs
`docs/how_to/big.sbatch` with a tiny model and one task per node. Each job must be
requeued once, resume, and end with the bits of a job that is not interrupted. With
`--work_dir`, the same command continues after an interruption. Requires Linux, root's
rights, munge and Slurm (`apt install slurm-wlm munge`).
"""

import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks.report import say
from flags import choice, parser, several
from machines import Machine, connect, require
from trials import HPARAMS, ROOT, run_trials

from t2t_repro.command_line import cli
from t2t_repro.system.errors import UserError

WAYS = {
    "limit": "scontrol update EndTime=now+2minutes JobId=",
    "group": "scancel --full --signal=TERM ",
    "requeue": "scontrol requeue ",
    "crash": "",
}
"""Commands that interrupt a job. ``limit``: the limit is closer than the 180 s of the
example's ``--signal``; ``group``: SIGTERM to all processes, also to the script;
``crash``: all processes of the second node die."""

SCRIPT = ROOT / "docs" / "how_to" / "big.sbatch"
_SIZE = "--ntasks-per-node=1", "--gpus-per-node=1", "--cpus-per-task=1", "--time=60"
_FINAL = "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY"
# Files stand for GPUs; the tasks see none and train on the CPU.
_CONF = """\
ClusterName=harness
SlurmctldHost=node1
SlurmUser=root
AuthInfo=socket={0}/munge.socket,cred_expire=5
StateSaveLocation={0}/state
SlurmctldPidFile={0}/slurmctld.pid
SlurmctldLogFile={0}/slurmctld.log
SlurmdSpoolDir={0}/spool-%n
SlurmdPidFile={0}/slurmd-%n.pid
SlurmdLogFile={0}/slurmd-%n.log
SlurmdParameters=config_overrides
SlurmdTimeout=20
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
ReturnToService=2
GresTypes=gpu
NodeName=node[1-2] CPUs=8 Gres=gpu:8
PartitionName=all Nodes=ALL Default=YES
"""


class Slurm:
    """A Slurm of two nodes; the first one also runs the controller.

    Args:
        folder: Folder of its files and of the jobs.
        machines: Machines of the nodes.
    """

    def __init__(self, folder: Path, machines: Sequence[Machine]) -> None:
        self._folder, self._machines = folder, machines
        conf = folder / "slurm.conf"
        os.environ |= {"SLURM_CONF": str(conf), "PYTHONPATH": str(ROOT)}
        conf.write_text(_CONF.format(folder), encoding="utf-8")
        (folder / "gres.conf").write_text(f"Name=gpu File={folder}/gpu[0-7]\n")
        for number in range(8):
            (folder / f"gpu{number}").touch()
        key = folder / "munge.key"
        key.unlink(missing_ok=True)
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        kinds = "key", "pid", "log", "seed"
        files = [f"--{kind}-file={folder}/munge.{kind}" for kind in kinds]
        # --force accepts a folder that other users cannot enter.
        self.run("munged", "--force", f"--socket={folder}/munge.socket", *files)
        self.run("slurmctld", "-c")
        for machine in machines:
            machine.run("slurmd", "-N", machine.name)
        self.wait(lambda: self.run("sinfo", "-h", "-o", "%t") == "idle", 60)

    def run(self, *command: str) -> str:
        """Runs a command on the first node; returns its output."""
        return self._machines[0].run(*command)

    def train(self, folder: Path, way: str | None, steps: int) -> str:
        """Runs the example, interrupted in a way of `WAYS`, until the job ends.

        Raises UserError if it was not requeued once or did not complete.
        """
        text = SCRIPT.read_text(encoding="utf-8")
        text = text.replace("/shared/models/big", str(folder))
        text = text.replace("/shared/data", f"{self._folder}/data")
        text = text.replace("--hparams big", f"--hparams {HPARAMS}{steps}")
        script, log = (folder.with_suffix(suffix) for suffix in (".sbatch", ".txt"))
        script.write_text(text.replace("python", sys.executable), encoding="utf-8")
        job = self.run("sbatch", "--parsable", f"--output={log}", *_SIZE, str(script))
        if way is not None:
            saved = folder / "checkpoints" / "step-00000200"
            self.wait(saved.exists, 600)
            self._interrupt(job, way)
        self.wait(lambda: self._state(job)[0] in _FINAL, 1200)
        state, restarts = self._state(job)
        if state != "COMPLETED" or restarts != (way is not None):
            say(log.read_text(encoding="utf-8", errors="replace"))
            raise UserError(f"{way}: {state} after {restarts} requeues")
        return f"{state}, requeues: {restarts}"

    def _interrupt(self, job: str, way: str) -> None:
        """Interrupts a job and waits until it has been requeued or has ended."""
        if way == "crash":
            machine = self._machines[1]
            machine.kill()
            self.wait(lambda: self._state(job)[0] != "RUNNING", 300)
            machine.run("slurmd", "-N", machine.name)
        else:
            self.run(*f"{WAYS[way]}{job}".split())
        self.wait(
            lambda: self._state(job) not in (("RUNNING", 0), ("COMPLETING", 0)), 300
        )
        if way == "limit" and self._state(job)[0] not in _FINAL:
            self.run("scontrol", "update", f"JobId={job}", "TimeLimit=60")

    def _state(self, job: str) -> tuple[str, int]:
        """Returns a job's state and its number of requeues."""
        shown = self.run("scontrol", "show", "job", "-o", job)
        state = re.findall(r"\bJobState=(\w+).*\bRestarts=(\d+)", shown)
        return state[0][0], int(state[0][1])

    def wait(self, condition: Callable[[], bool], seconds: float) -> None:
        """Waits for a condition; raises UserError after some seconds."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise UserError(f"nothing has happened in Slurm for {seconds:.0f} s")
            time.sleep(0.2)


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the jobs and prints their results."""
    args = parser(
        __doc__,
        ("ways", several(choice(WAYS)), list(WAYS), f"of {','.join(WAYS)}"),
        ("steps", cli.int_range(300), 3000, "training steps, of a minute or more"),
        ("work_dir", cli.path, None, "folder for models and results, which is kept"),
    ).parse_args(argv)
    require("slurmctld", "slurmd", "munged")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(args.work_dir or temporary).resolve()
        with connect(folder) as (*machines, _):
            slurm = Slurm(folder, machines)
            train = partial(slurm.train, steps=args.steps)
            trials = {way: partial(train, way=way) for way in args.ways}
            run_trials(folder, partial(train, way=None), trials, args.json)


if __name__ == "__main__":
    cli.run(main)
