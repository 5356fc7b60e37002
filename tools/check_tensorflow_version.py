"""Loads and runs an export under another version of TensorFlow.

    python tools/check_tensorflow_version.py --export_dir exported --tensorflow 2.20

Creates an environment with this version, which takes minutes and 2 GB. Runs all
signatures of the newest version of the export there and in the current environment,
using only the graph loader, and compares the outputs. The newest release of TensorFlow
Serving may be one minor version older than the TensorFlow that exports.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.in_turn import Process, peer
from environments import make_environment

from t2t_repro.command_line import cli
from t2t_repro.system.errors import UserError

# Kernels of different versions round differently in float32.
_TOLERANCE = 1e-4
_PACKAGES = ("tensorflow", "tensorflow-text")
_DEFAULT_LINES = ("one two three", "", "1 2 3 4 5 6 7 8", "a € 日本 b")


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(
        "Compares the outputs of an export under another version of TensorFlow."
    )
    add = parser.add_argument
    add("--export_dir", required=True, help="folder of the versions")
    add("--tensorflow", default="2.20", help="major and minor version of TensorFlow")
    environment = "folder of the environment, reused if present (default: temporary)"
    add("--environment", help=environment)
    add("--source_file", help="file whose first 32 lines are translated")
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the export under both versions and prints differences."""
    args = _parser().parse_args(argv)
    version = _newest(Path(args.export_dir))
    lines = list(_DEFAULT_LINES)
    if args.source_file:
        text = Path(args.source_file).read_text(encoding="utf-8")
        lines = text.split("\n")[:32]
    with tempfile.TemporaryDirectory() as temporary:
        packages = [f"{name}=={args.tensorflow}.*" for name in _PACKAGES]
        python = make_environment(Path(args.environment or temporary), packages)
        there = answers(python, version, lines)
    here = answers(sys.executable, version, lines)
    different, worst = compare(
        *([each["outputs"] for each in x] for x in (here, there))
    )
    values = {
        "tensorflow": there[0]["tensorflow"],
        "here": here[0]["tensorflow"],
        "lines": len(lines),
        "different_texts": different,
        "largest_difference": worst,
    }
    cli.print_result(
        f"TensorFlow {values['tensorflow']} compared with {values['here']}, "
        f"{len(lines)} lines, all signatures: {different} texts differ, numbers differ "
        f"by at most {worst:.1e}",
        values,
        args.json,
    )
    if different or worst > _TOLERANCE:
        sys.exit(1)


def answers(python: str, version: Path, lines: Sequence[str]) -> list[dict[str, Any]]:
    """Runs all signatures in another process and returns their answers.

    Signatures that require a translation get the source line. Raises UserError if the
    export cannot be loaded or run.

    Args:
        python: Interpreter of an environment with TensorFlow.
        version: Folder of the exported version.
        lines: Lines to translate.

    Returns:
        Answers of `peers/run_export.py`.
    """
    export = peer(f"{version} under {python}", python, "run_export.py", str(version))
    single = {"text": lines}
    pairs = single | {"translation": lines}
    with tempfile.TemporaryDirectory() as log, Process(export, Path(log)) as process:
        return [
            process.ask({"signature": name, "inputs": inputs})
            for name, inputs in (
                *(("serving_default", single), ("nbest", single)),
                *(("score", pairs), ("attention", pairs)),
            )
        ]


def compare(
    ours: Sequence[dict[str, list[Any]]], theirs: Sequence[dict[str, list[Any]]]
) -> tuple[int, float]:
    """Returns the number of different texts and the largest difference of numbers."""
    different, worst = 0, 0.0
    for mine, other in zip(ours, theirs, strict=True):
        for name, values in mine.items():
            for one, two in zip(values, other[name], strict=True):
                if isinstance(one, str):
                    different += one != two
                else:
                    worst = max(worst, abs(one - two))
    return different, worst


def _newest(export_dir: Path) -> Path:
    """Returns the folder of the newest version; raises UserError without a version."""
    paths = export_dir.iterdir() if export_dir.is_dir() else ()
    numbers = [int(path.name) for path in paths if path.name.isdecimal()]
    if not numbers:
        raise UserError(
            f"--export_dir {export_dir} lacks an exported version; create one with "
            "python -m t2t_repro.export"
        )
    return export_dir / str(max(numbers))


if __name__ == "__main__":
    cli.run(main)
