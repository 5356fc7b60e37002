"""Averages the weights of the last checkpoints (paper section 6.1).

Memory use is low because tensors are averaged one at a time.
"""

from collections.abc import Sequence
from pathlib import Path

from t2t_repro.command_line import cli
from t2t_repro.runs.run_metadata import require_model


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(__doc__)
    parser.add_argument(
        "--model_dir", type=cli.path, required=True, help="model directory"
    )
    parser.add_argument(
        "--last",
        type=cli.int_range(1),
        help="number of checkpoints to average (default: the model's average_last; "
        "all of the present data if there are fewer)",
    )
    parser.add_argument(
        "--output_dir",
        type=cli.path,
        help="folder of the averaged checkpoint (default: MODEL_DIR/averaged)",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, averages the checkpoints and prints their steps."""
    args = _parser().parse_args(argv)
    require_model(Path(args.model_dir))
    cli.start_tensorflow(args.verbose)
    from t2t_repro.runs.averaging import average_checkpoints
    from t2t_repro.runs.checkpoints import (
        checkpoints_to_average,
        refuse_to_replace,
        select_last,
    )
    from t2t_repro.runs.model_dir import ModelDir

    directory = ModelDir(Path(args.model_dir))
    checkpoints = checkpoints_to_average(directory.checkpoint_dir)
    last = args.last or max(1, min(directory.hparams().average_last, len(checkpoints)))
    selected = select_last(checkpoints, last)
    output = Path(args.output_dir) if args.output_dir else directory.averaged_dir
    if args.output_dir:
        refuse_to_replace(output)
    average_checkpoints(selected, output)
    steps = [checkpoint.step for checkpoint in selected]
    cli.print_result(
        f"averaged the checkpoints of steps {', '.join(map(str, steps))} into {output}",
        {"averaged_steps": steps, "checkpoint": str(output)},
        args.json,
    )


if __name__ == "__main__":
    cli.run(main)
