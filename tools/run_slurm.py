"""Runs the Slurm examples in a real Slurm and interrupts them in several ways.

    python tools/run_slurm.py [--ways limit,group,requeue,crash]
    python tools/run_slurm.py --example datagen --ways requeue,crash

A Slurm of its own, with two nodes in Linux namespaces of this machine, runs an example
of `docs/how_to/` with one task per node: `big.sbatch` with a tiny model, or
`datagen.sbatch` with two parts and two million short pairs. Each job must be requeued
once, resume, and end with the bits of a run that is not interrupted. With `--work_dir`,
the same command continues after an interruption. Requires Linux, root's rights, munge
and Slurm (`apt install slurm-wlm munge`).
"""

import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks.report import say
from flags import choice, parser, several
from machines import Machine, connect, require
from trials import HPARAMS, REFERENCE, ROOT, UNDERWAY, run_trials

from t2t_repro.command_line import cli
from t2t_repro.system.errors import UserError

WAYS = {
    "limit": "scontrol update EndTime=now+3minutes JobId=",
    "group": "scancel --full --signal=TERM ",
    "requeue": "scontrol requeue ",
    "crash": "",
}
"""Commands that interrupt a job. ``limit``: the limit is as close as the 180 s of the
example's ``--signal``; ``group``: SIGTERM to all processes, also to the script;
``crash``: all processes of the second node die."""

_BIG = "--ntasks-per-node=1", "--gpus-per-node=1", "--cpus-per-task=1", "--time=60"
_DATAGEN = "--array=0-1", "--cpus-per-task=8"
_PAIRS = 2_000_000  # Two shards for each of two parts.
_SHARD = "**/00001.lengths.npy"  # First shard of the second part.
_MOST_SECONDS = 1800
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
        self._wait(lambda: self.run("sinfo", "-h", "-o", "%t") == "idle")

    def run(self, *command: str) -> str:
        """Runs a command on the first node; returns its output."""
        return self._machines[0].run(*command)

    def train(self, folder: Path, way: str | None) -> str:
        """Runs the example of training, interrupted in a way of `WAYS`, to its end.

        Raises UserError if it was not requeued once or did not complete.
        """
        new = {
            "/shared/models/big": f"{folder}",
            "/shared/data": f"{self._folder}/data",
            "--hparams big": f"--hparams {HPARAMS}",
        }
        job = self._submit("big", folder, new, _BIG)
        if way is not None:
            self._wait(lambda: UNDERWAY in _log(folder).read_text(errors="replace"))
            self._interrupt(job, way)
        return self._finish(job, folder, way)

    def encode(self, folder: Path, way: str | None) -> str:
        """Encodes a corpus with the array of jobs; without `way`, in one process.

        The second node's task is interrupted after its first shard. Raises UserError if
        it was not requeued once, if this shard was encoded again, or if files differ.
        """
        data, outcome = self._folder / "data", "one process"
        flags = f"--data_dir {data} --shard_dir {folder} --hparams base,vocab_size=300"
        if way is None:
            data.mkdir(exist_ok=True)
            for language, words in ("en", 997), ("de", 991):
                lines = (f"{i % words} {i % 7}\n" for i in range(_PAIRS))
                (data / f"train.{language}").write_text("".join(lines))
        else:
            new = {"--data_dir /shared/mytext --hparams base": flags}
            new["--num_shards 8"] = "--num_shards 2"
            job = self._submit("datagen", folder, new, _DATAGEN)
            self._wait(lambda: any(folder.glob(_SHARD)))
            (shard,) = folder.glob(_SHARD)
            written = shard.stat().st_mtime_ns
            self._interrupt(f"{job}_1", way)
            outcome = self._finish(job, folder, way)
            if shard.stat().st_mtime_ns != written:
                raise UserError(f"{shard} was encoded again")
        command = f"{sys.executable} -m t2t_repro.datagen --problem files {flags}"
        self.run(*command.split())
        self.run("diff", "-r", str(folder.with_name(REFERENCE)), str(folder))
        return f"{outcome}, files identical"

    def _submit(
        self, example: str, folder: Path, new: Mapping[str, str], options: Sequence[str]
    ) -> str:
        """Submits an example in which some text is replaced; returns the job's ID."""
        path = ROOT / "docs" / "how_to" / f"{example}.sbatch"
        text = path.read_text(encoding="utf-8").replace("python", sys.executable)
        for old, value in new.items():
            text = text.replace(old, value)
        script = Path(f"{folder}.sbatch")
        script.write_text(text, encoding="utf-8")
        _log(folder).write_text("")
        output = f"--output={_log(folder)}"
        return self.run("sbatch", "--parsable", output, *options, str(script))

    def _interrupt(self, job: str, way: str) -> None:
        """Interrupts a job and waits until it has been requeued or has ended."""
        crashing = self._machines[1]
        self._signal("STOP")  # A fast machine must not finish in the meantime.
        if way == "crash":
            crashing.kill()
        else:
            self.run(*f"{WAYS[way]}{job}".split())
        self._signal("CONT")
        if way == "crash":
            self._wait(lambda: self._states(job)[0][0] != "RUNNING")
            crashing.run("slurmd", "-N", crashing.name)
        while self._states(job)[0] in (("RUNNING", 0), ("COMPLETING", 0)):
            if way == "limit":  # Slurm looks at it every 30 s.
                self._signal("STOP")
                time.sleep(4)
                self._signal("CONT")
            time.sleep(0.05)
        if way == "limit" and self._states(job)[0][1]:
            self.run("scontrol", "update", f"JobId={job}", "TimeLimit=60")

    def _signal(self, name: str) -> None:
        """Sends a signal to the Python processes of all tasks."""
        for machine in self._machines:
            command = f"pkill -{name} -f '^{sys.executable}' || true"
            machine.run("sh", "-c", command)  # It fails if there are none.

    def _finish(self, job: str, folder: Path, way: str | None) -> str:
        """Waits for the end of all jobs; returns the states of one job in words."""
        self._wait(lambda: not self.run("squeue", "-h"))
        states, requeues = zip(*self._states(job), strict=True)
        if {*states} != {"COMPLETED"} or sum(requeues) != (way is not None):
            say(_log(folder).read_text(encoding="utf-8", errors="replace"))
            raise UserError(f"{way}: {states} after {requeues} requeues")
        return f"COMPLETED, requeues: {sum(requeues)}"

    def _states(self, job: str) -> list[tuple[str, int]]:
        """Returns the state and the number of requeues of a job, or of each task."""
        shown = self.run("scontrol", "show", "job", "-o", job)
        states = re.findall(r"\bJobState=(\w+).*?\bRestarts=(\d+)", shown)
        return [(state, int(restarts)) for state, restarts in states]

    def _wait(self, condition: Callable[[], bool]) -> None:
        """Waits for a condition; raises UserError after `_MOST_SECONDS`."""
        end = time.monotonic() + _MOST_SECONDS
        while not condition():
            if time.monotonic() > end:
                raise UserError(f"nothing has happened in Slurm for {_MOST_SECONDS} s")
            time.sleep(0.1)


def _log(folder: Path) -> Path:
    return Path(f"{folder}.txt")


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the jobs and prints their results."""
    args = parser(
        __doc__,
        ("example", choice(["big", "datagen"]), "big", "big (training) or datagen"),
        ("ways", several(choice(WAYS)), list(WAYS), f"of {','.join(WAYS)}"),
        ("work_dir", cli.path, None, "folder for models and results, which is kept"),
    ).parse_args(argv)
    require("slurmctld", "slurmd", "munged")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(args.work_dir or temporary).resolve() / args.example
        with connect(folder) as (*machines, _):
            slurm = Slurm(folder, machines)
            run = slurm.train if args.example == "big" else slurm.encode
            trials = {way: partial(run, way=way) for way in args.ways}
            run_trials(folder, partial(run, way=None), trials, args.json)


if __name__ == "__main__":
    cli.run(main)
