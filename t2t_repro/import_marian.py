"""Imports a model that Marian trained: OPUS-MT's, or one of Transformers'."""

from collections.abc import Sequence
from pathlib import Path

from t2t_repro.command_line import cli


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(
        "Makes a model directory of a Marian model: an OPUS-MT download, the folder of "
        "a training with Marian, or a MarianMTModel of Hugging Face Transformers. The "
        "other commands work on it as on any model, but for evaluate, which needs "
        "files."
    )
    parser.add_argument(
        "--folder",
        required=True,
        help="with decoder.yml, *.npz, *.vocab.yml, or config.json and its weights; "
        "and source.spm, target.spm",
    )
    parser.add_argument(
        "--model_dir", required=True, help="folder to make; absent or empty"
    )
    parser.add_argument(
        "--positions",
        choices=("marian", "transformers"),
        default="marian",
        help="whose position signal and epsilon of the norms: those that the model "
        "was trained with, or those that Transformers and CTranslate2 give it",
    )
    parser.add_argument(
        "--decoder_yml", help="the file in a Marian folder, where there are several"
    )
    parser.add_argument(
        "--activation",
        choices=("gelu", "gelu_sigmoid"),
        help="which GELU a Marian folder's model has; default: that of its version",
    )
    parser.add_argument(
        "--source_lang", help="it translates from; default: as the files say, or en"
    )
    parser.add_argument(
        "--target_lang", help="it translates into; default: as the files say, or de"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, imports the model and says what came along."""
    args = _parser().parse_args(argv)
    cli.start_tensorflow(args.verbose)
    from t2t_repro.interop.marian.importer import Source, import_model

    report = import_model(
        Source(
            folder=Path(args.folder),
            positions=args.positions,
            decoder_yml=args.decoder_yml,
            activation=args.activation,
            source_lang=args.source_lang,
            target_lang=args.target_lang,
        ),
        Path(args.model_dir),
    )
    cli.print_result(report.text(), report.to_dict(), args.json)


if __name__ == "__main__":
    cli.run(main)
