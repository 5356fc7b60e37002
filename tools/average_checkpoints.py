"""Averages the given checkpoints; t2t_repro.average selects the last ones of a model.

python tools/average_checkpoints.py A B C --output_dir D
"""

from collections.abc import Sequence
from pathlib import Path

from flags import REQUIRED, parser

from t2t_repro.command_line import cli


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, averages the checkpoints and prints their steps."""
    output = ("output_dir", Path, REQUIRED, "folder for the averaged checkpoint")
    flags = parser(__doc__, output)
    folders = "folders of checkpoints, such as MODEL_DIR/checkpoints/step-00001500"
    flags.add_argument("checkpoints", nargs="+", type=Path, help=folders)
    args = flags.parse_args(argv)
    cli.start_tensorflow(args.verbose)
    from t2t_repro.runs.averaging import average_checkpoints
    from t2t_repro.runs.checkpoints import open_checkpoint, refuse_to_replace

    refuse_to_replace(args.output_dir)
    checkpoints = [open_checkpoint(path) for path in args.checkpoints]
    averaged = average_checkpoints(checkpoints, args.output_dir)
    steps, path = [checkpoint.step for checkpoint in checkpoints], str(averaged.path)
    text = f"averaged the checkpoints of steps {', '.join(map(str, steps))} into {path}"
    cli.print_result(text, {"averaged_steps": steps, "checkpoint": path}, args.json)


if __name__ == "__main__":
    cli.run(main)
