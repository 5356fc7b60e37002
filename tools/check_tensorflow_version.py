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
from flags import REQUIRED, parser

from t2t_repro.command_line import cli
from t2t_repro.system.atomic_file import read_lines
from t2t_repro.system.errors import UserError

# Kernels of different versions round differently in float32.
_TOLERANCE = 1e-4
_PACKAGES = ("tensorflow", "tensorflow-text")
_DEFAULT_LINES = ("one two three", "", "1 2 3 4 5 6 7 8", "a € 日本 b")


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the export under both versions and prints differences."""
    args = parser(
        __doc__,
        ("export_dir", str, REQUIRED, "folder of the versions"),
        ("tensorflow", str, "2.20", "major and minor version of TensorFlow"),
        ("environment", str, None, "folder to keep the environment in, or to reuse"),
        ("source_file", str, None, "file whose first 32 lines are translated"),
    ).parse_args(argv)
    version = _newest(Path(args.export_dir))
    lines = read_lines(args.source_file)[:32] if args.source_file else _DEFAULT_LINES
    with tempfile.TemporaryDirectory() as temporary:
        packages = [f"{name}=={args.tensorflow}.*" for name in _PACKAGES]
        python = make_environment(Path(args.environment or temporary), packages)
        there = answers(python, version, lines)
    here = answers(sys.executable, version, lines)
    outputs = ([each["outputs"] for each in answered] for answered in (here, there))
    different, worst = compare(*outputs)
    other, ours = there[0]["tensorflow"], here[0]["tensorflow"]
    values = {"tensorflow": other, "here": ours, "lines": len(lines)}
    values |= {"different_texts": different, "largest_difference": worst}
    text = (
        f"TensorFlow {other} compared with {ours}, {len(lines)} lines, all signatures: "
        f"{different} texts differ, numbers differ by at most {worst:.1e}"
    )
    cli.print_result(text, values, args.json)
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
    single, pairs = {"text": lines}, {"text": lines, "translation": lines}
    inputs = {"serving_default": single, "nbest": single}
    inputs |= {"score": pairs, "attention": pairs}
    with tempfile.TemporaryDirectory() as log, Process(export, Path(log)) as process:
        return [
            process.ask({"signature": name, "inputs": each})
            for name, each in inputs.items()
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
