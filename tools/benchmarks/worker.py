"""Runs a benchmark task of this package in its own process.

    python -m benchmarks.worker MODULE.FUNCTION WORK

WORK is a JSON object, the task's argument.
"""

import importlib
import json
import sys
from collections.abc import Sequence

# Redirects standard output, so it must precede imports that print.
import benchmarks.peers.turns  # noqa: F401
from t2t_repro.command_line import cli


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the task given on the command line.

    The key `without` of WORK lists optimized implementations to disable.
    """
    task, work = sys.argv[1:] if argv is None else argv
    module, _, function = task.rpartition(".")
    work = json.loads(work)
    cli.start_tensorflow()
    from t2t_repro import fast

    fast.install(without=work.pop("without", ()))
    getattr(importlib.import_module(f"benchmarks.{module}"), function)(work)


if __name__ == "__main__":
    cli.run(main)
