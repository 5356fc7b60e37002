"""Runs that are disturbed, and their comparison with an undisturbed one."""

import json
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from inject_faults import EXIT_DIFFERENT, compare_resumed

from t2t_repro.command_line import cli
from t2t_repro.system.atomic_file import write_text_atomically

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = "reference"
HPARAMS = (
    "tiny,d_model=16,d_ff=32,num_heads=2,num_layers=1,dropout=0.1,tokens_per_batch=256,"
    "checkpoint_steps=40,keep_checkpoints=99,average_last=2,eval_steps=0,"
    # Nothing is scored before the end of the warm-up.
    "warmup_steps=99999,train_steps=200"
)
UNDERWAY = "step 50/"
"""Printed when a run is disturbed, between two checkpoints."""

Trial = Callable[[Path], str]
"""Works in a folder to the end; returns in words what happened meanwhile."""


def run_trials(
    folder: Path, reference: Trial, trials: Mapping[str, Trial], as_json: bool
) -> None:
    """Runs trials, compares them bit by bit and prints the results.

    The exit status is 1 if a result differs. Results are kept as ``NAME.json``, and
    trials that have one are not repeated.

    Args:
        folder: Folder of the trials and results.
        reference: Trial without disturbance.
        trials: Other trials by name.
        as_json: Whether standard output is only a JSON object.
    """
    results = {}
    for name, trial in {REFERENCE: reference, **trials}.items():
        path = folder / f"{name}.json"
        if not path.exists():
            shutil.rmtree(folder / name, ignore_errors=True)
            began = time.monotonic()
            result: dict[str, Any] = {"outcome": trial(folder / name)}
            result["seconds"] = time.monotonic() - began
            cli.start_tensorflow()  # Late, because the trials need the memory.
            compared = compare_resumed(folder / REFERENCE, folder / name)
            result["compared"], result["different"] = compared
            write_text_atomically(path, json.dumps(result, indent=2) + "\n")
        result = results[name] = json.loads(path.read_text(encoding="utf-8"))
        line = "{outcome}, {seconds:.0f} s in all, {compared} variables compared"
        line = f"{name}: {line.format(**result)}, different: {result['different']}"
        print(line, file=sys.stderr if as_json else sys.stdout, flush=True)
    identical = sum(not result["different"] for result in results.values()) - 1
    text = f"{identical} of {len(trials)} ended with identical bits"
    cli.print_result(text, {"identical": identical, "trials": results}, as_json)
    if identical < len(trials):
        sys.exit(EXIT_DIFFERENT)
