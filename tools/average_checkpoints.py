"""Averages the given checkpoints; t2t_repro.average selects the last ones of a model.

python tools/average_checkpoints.py A B C --output_dir D
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from t2t_repro.command_line import cli


def _parser() -> argparse.ArgumentParser:
    parser = cli.ArgumentParser("Averages the weights of the given checkpoints.")
    parser.add_argument(
        "checkpoints",
        nargs="+",
        type=Path,
        help="folders of checkpoints, such as MODEL_DIR/checkpoints/step-00001500",
    )
    parser.add_argument(
        "--output_dir",
        type=Path,
        required=True,
        help="folder for the averaged checkpoint",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, averages the checkpoints and prints their steps."""
    args = _parser().parse_args(argv)
    cli.start_tensorflow(args.verbose)
    from t2t_repro.runs.averaging import average_checkpoints
    from t2t_repro.runs.checkpoints import open_checkpoint, refuse_to_replace

    refuse_to_replace(args.output_dir)
    checkpoints = [open_checkpoint(path) for path in args.checkpoints]
    averaged = average_checkpoints(checkpoints, args.output_dir)
    steps = [checkpoint.step for checkpoint in checkpoints]
    cli.print_result(
        f"averaged the checkpoints of steps {', '.join(map(str, steps))} into "
        f"{averaged.path}",
        {"averaged_steps": steps, "checkpoint": str(averaged.path)},
        args.json,
    )


if __name__ == "__main__":
    cli.run(main)
