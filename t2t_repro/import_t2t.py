"""Imports a model that tensor2tensor trained."""

from collections.abc import Sequence
from pathlib import Path

from t2t_repro.command_line import cli


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(
        "Makes a model directory of a tensor2tensor checkpoint, its hyper-parameters "
        "and its vocabulary. The other commands work on it as on any model, but for "
        "evaluate, which needs the data it was trained on."
    )
    parser.add_argument(
        "--checkpoint",
        required=True,
        help="the checkpoint's prefix (model.ckpt-250000), or the folder that holds it",
    )
    hparams = parser.add_mutually_exclusive_group(required=True)
    hparams.add_argument("--hparams_json", help="hparams.json of the training")
    hparams.add_argument(
        "--t2t_hparams_set", help="its set, where there is no hparams.json"
    )
    parser.add_argument(
        "--t2t_hparams",
        default="",
        help="tensor2tensor's hyper-parameters that differ: key=value,key=value",
    )
    parser.add_argument(
        "--vocab_file",
        required=True,
        help="the subwords that source and target share (vocab.*.subwords)",
    )
    parser.add_argument(
        "--model_dir", required=True, help="folder to make; absent or empty"
    )
    parser.add_argument("--source_lang", default="en", help="it translates from")
    parser.add_argument("--target_lang", default="de", help="it translates into")
    parser.add_argument(
        "--target_space_id",
        type=cli.at_least(0),
        default=0,
        help="the problem's target_space_id; 0 unless the problem sets another",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, imports the model and says what came along."""
    args = _parser().parse_args(argv)
    cli.start_tensorflow(args.verbose)
    from t2t_repro.interop.tensor2tensor import hparams as t2t_hparams
    from t2t_repro.interop.tensor2tensor import sets as t2t_sets
    from t2t_repro.interop.tensor2tensor.importer import Source, import_model

    if args.hparams_json:
        hparams = t2t_hparams.read_json(Path(args.hparams_json))
    else:
        hparams = t2t_sets.load(args.t2t_hparams_set)
    report = import_model(
        Source(
            checkpoint=Path(args.checkpoint),
            hparams=hparams | t2t_hparams.parse_t2t_overrides(args.t2t_hparams),
            vocab_file=Path(args.vocab_file),
            source_lang=args.source_lang,
            target_lang=args.target_lang,
            target_space_id=args.target_space_id,
        ),
        Path(args.model_dir),
    )
    cli.print_result(report.text(), report.to_dict(), args.json)


if __name__ == "__main__":
    cli.run(main)
