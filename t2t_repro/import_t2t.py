"""Imports a model that was trained with tensor2tensor.

It converts a checkpoint, its hyper-parameters and its vocabulary to a model directory.
All other commands work on this directory, but evaluate needs --source_file and
--reference_file because the training data are unknown.
"""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.command_line import cli, import_command

if TYPE_CHECKING:
    from t2t_repro.interop.source import Source


def _parser() -> cli.ArgumentParser:
    parser = import_command.parser(__doc__)
    parser.add_argument(
        "--checkpoint",
        type=cli.path,
        required=True,
        help="prefix of the checkpoint (model.ckpt-250000), or folder of checkpoints",
    )
    hparams = parser.add_mutually_exclusive_group(required=True)
    hparams.add_argument(
        "--hparams_json", type=cli.path, help="hparams.json of the training"
    )
    hparams.add_argument(
        "--t2t_hparams_set", help="name of tensor2tensor's hyper-parameter set"
    )
    parser.add_argument(
        "--t2t_hparams",
        default="",
        help="overrides of tensor2tensor's hyper-parameters: key=value,key=value",
    )
    parser.add_argument(
        "--vocab_file",
        type=cli.path,
        required=True,
        help="subword vocabulary shared by source and target (vocab.*.subwords)",
    )
    parser.add_argument(
        "--target_space_id",
        type=cli.int_range(0),
        default=0,
        help="target_space_id of tensor2tensor's problem (default: 0)",
    )
    return parser


def _read(args: Namespace) -> "Source":
    from t2t_repro.interop.tensor2tensor import hparams, sets
    from t2t_repro.interop.tensor2tensor.importer import read

    if args.hparams_json:
        values = hparams.read_json(Path(args.hparams_json))
    else:
        values = sets.load(args.t2t_hparams_set)
    return read(
        checkpoint=Path(args.checkpoint),
        hparams=values | hparams.parse_t2t_overrides(args.t2t_hparams),
        vocab_file=Path(args.vocab_file),
        target_space_id=args.target_space_id,
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, imports the model and prints the report."""
    import_command.run(_parser(), argv, _read)


if __name__ == "__main__":
    cli.run(main)
