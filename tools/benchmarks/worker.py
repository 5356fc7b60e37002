"""One program of this package, in its own process; WORK is a JSON object.

python -m benchmarks.worker MODULE.FUNCTION WORK
"""

import importlib
import json
import sys
from collections.abc import Sequence

# Before anything else can print.
import benchmarks.peers.turns  # noqa: F401
from t2t_repro.command_line import cli


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the task that the command line names.

    `without` in WORK lists optimized implementations that are not installed.
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
