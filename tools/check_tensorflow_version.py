"""Loads and runs an export under another version of TensorFlow.

    python tools/check_tensorflow_version.py --export_dir exported --tensorflow 2.20

makes an environment with that version (some minutes and 2 GB the first time), runs
every signature of the newest version of the export there and here, through the graph
loader alone, and compares the answers. The newest published server may be a minor
version behind the TensorFlow that exports.
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

# As good as each other in float32: kernels differ between versions.
_TOLERANCE = 1e-4
_PACKAGES = ("tensorflow", "tensorflow-text")
_DEFAULT_LINES = ("one two three", "", "1 2 3 4 5 6 7 8", "a € 日本 b")


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(
        "Runs the newest version of an export under another TensorFlow and compares."
    )
    add = parser.add_argument
    add("--export_dir", required=True, help="folder of the versions")
    add("--tensorflow", default="2.20", help="major and minor version")
    kept = "folder for it, kept for the next time (default: a temporary one)"
    add("--environment", help=kept)
    add("--source_file", help="text to translate, the first 32 lines")
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the export twice and prints how it compares."""
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
        f"TensorFlow {values['tensorflow']} against {values['here']}, {len(lines)} "
        f"lines, every signature: {different} texts differ, numbers by at most "
        f"{worst:.1e}",
        values,
        args.json,
    )
    if different or worst > _TOLERANCE:
        sys.exit(1)


def answers(python: str, version: Path, lines: Sequence[str]) -> list[dict[str, Any]]:
    """Asks every signature in a process of an environment; see `peers/run_export.py`.

    Each line is its own translation where one must be given. Raises UserError if the
    export cannot be loaded or run there.
    """
    export = peer(f"{version} under {python}", python, "run_export.py", str(version))
    single = {"text": lines}
    pairs = single | {"translation": lines}
    with tempfile.TemporaryDirectory() as log, Process(export, Path(log)) as asked:
        return [
            asked.ask({"signature": name, "inputs": inputs})
            for name, inputs in (
                *(("serving_default", single), ("nbest", single)),
                *(("score", pairs), ("attention", pairs)),
            )
        ]


def compare(
    ours: Sequence[dict[str, list[Any]]], theirs: Sequence[dict[str, list[Any]]]
) -> tuple[int, float]:
    """Counts the texts that differ, and finds the largest difference of a number."""
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
    """Returns the folder of the newest version; UserError if there is none."""
    found = export_dir.iterdir() if export_dir.is_dir() else ()
    numbers = [int(path.name) for path in found if path.name.isdecimal()]
    if not numbers:
        raise UserError(
            f"--export_dir {export_dir} holds no version; make one with python -m "
            "t2t_repro.export"
        )
    return export_dir / str(max(numbers))


if __name__ == "__main__":
    cli.run(main)
