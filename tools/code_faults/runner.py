"""Runs tests in a copy of the code with a fault."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from code_faults.fault_list import Fault
from t2t_repro.system.errors import UserError

CAUGHT, ESCAPED, ERROR = "caught", "escaped", "error"
_PYTEST = (
    *(sys.executable, "-m", "pytest", "-x", "-q", "-rfE"),
    *("-p", "no:cacheprovider", "-m"),
)
_PASSED, _FAILED, _NO_TESTS = 0, 1, 5  # pytest.ExitCode
_FAILURE = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", re.MULTILINE)


class Outcome(NamedTuple):
    """Outcome of a fault.

    Attributes:
        kind: CAUGHT, ESCAPED or ERROR.
        test: First failing test of a caught fault, or the reason of an error.
        seconds: Running time of the tests.
    """

    kind: str
    test: str = ""
    seconds: float = 0.0


class Runner:
    """Runs tests in a copy of a checkout.

    Args:
        tree: Git checkout; raises UserError for any other folder.
        copy: Empty folder for a copy of the tracked files.
        timeout: Time limit per fault in seconds.
    """

    def __init__(self, tree: Path, copy: Path, timeout: int) -> None:
        command = ["git", "-C", str(tree), "ls-files", "-z"]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        if process.returncode:
            raise UserError(
                f"--tree {tree}: {process.stderr.strip()}; give a git checkout"
            )
        for name in process.stdout.split("\0"):
            if (tree / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(tree / name, copy / name)
        self._copy, self._timeout, self._changes = copy, timeout, 0
        # The copy takes precedence over an installed package, also in subprocesses.
        self._environment = {**os.environ, "PYTHONPATH": str(copy)}
        self._environment.setdefault("T2T_REPRO_SHARED", str(tree.parent / "shared"))

    def run(self, fault: Fault) -> Outcome:
        """Applies a fault, runs its tests up to the first failure and reverts it."""
        path, began = self._copy / fault.file, time.monotonic()
        before, status = path.read_bytes(), path.stat()
        path.write_bytes(fault.apply(before.decode()).encode())
        # Python recompiles a source file if its size or modification time (in seconds)
        # has changed, so each change gets a new time.
        self._changes += 1
        os.utime(path, (self._changes, self._changes))
        try:
            kind, test = self._judge(fault.tests, began + self._timeout)
        finally:
            path.write_bytes(before)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        seconds = time.monotonic() - began
        if kind == CAUGHT:  # The test must pass without the fault.
            deadline = time.monotonic() + self._timeout
            if self._pytest("not slow", [test.split("[")[0]], deadline)[0] != _PASSED:
                kind, test = ERROR, f"{test} does not pass without the fault"
        return Outcome(kind, test, seconds)

    def _judge(self, tests: Sequence[str], deadline: float) -> tuple[str, str]:
        """Returns the kind of outcome, and the first failing test or the reason."""
        statuses = set()
        for marks in ("not medium and not slow", "medium and not slow"):
            status, output = self._pytest(marks, tests, deadline)
            match = _FAILURE.search(output)
            last = match[1] if match else output.rpartition("\n")[2]
            # A failure without "::" is a file that cannot be imported.
            if status == _FAILED and "::" in last:
                return CAUGHT, last
            if status not in (_PASSED, _NO_TESTS):
                return ERROR, f"pytest exited with status {status}: {last}"
            statuses.add(status)
        return (ESCAPED, "") if _PASSED in statuses else (ERROR, "no test was selected")

    def _pytest(
        self, marks: str, tests: Sequence[str], deadline: float
    ) -> tuple[int, str]:
        """Runs pytest, kills it at the deadline, and returns its status and output."""
        with tempfile.TemporaryFile("w+", errors="replace") as output:
            process = subprocess.Popen(
                [*_PYTEST, marks, *tests],
                cwd=self._copy,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                return -signal.SIGKILL, f"killed after {self._timeout} s (--timeout)"
            finally:
                if process.returncode is None:
                    os.killpg(process.pid, signal.SIGKILL)  # Kills subprocesses too.
                    process.wait()
            output.seek(0)
            return process.returncode, output.read().strip()
