"""One contender of this package, alone in its process; WORK is a JSON object.

python -m benchmarks.worker MODULE.FUNCTION WORK
"""

import importlib
import json
import sys
from collections.abc import Sequence

# Before anything else can print.
import peers.turns  # noqa: F401

from t2t_repro.command_line import cli


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the task that the command line names."""
    task, work = sys.argv[1:] if argv is None else argv
    module, _, function = task.rpartition(".")
    cli.start_models()  # As every command does.
    getattr(importlib.import_module(f"benchmarks.{module}"), function)(json.loads(work))


if __name__ == "__main__":
    cli.run(main)
