"""Scores parses against a treebank, as EVALB does.

It prints recall, precision and F1 of labelled brackets, complete match and tagging
accuracy in percent, as EVALB does with COLLINS.prm. The figures are computed over valid
parses with the right words (as in EVALB), over all sentences with invalid parses
counted as 0, and over short sentences.
"""

from collections.abc import Sequence

from t2t_repro.command_line import cli


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(__doc__)
    parser.add_argument(
        "--gold",
        type=cli.path,
        required=True,
        help="file of the treebank's trees, one per line (may be .gz)",
    )
    parser.add_argument(
        "--test",
        type=cli.path,
        required=True,
        help="file of the parses, one per line; an empty line means no parse",
    )
    parser.add_argument(
        "--param_file",
        type=cli.path,
        help="EVALB parameter file, *.prm (default: the values of COLLINS.prm)",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, compares the files and prints the figures."""
    args = _parser().parse_args(argv)
    from t2t_repro.evaluation.parseval import COLLINS, parseval_files
    from t2t_repro.evaluation.parseval_trees import read_parameters

    parameters = read_parameters(args.param_file) if args.param_file else COLLINS
    report = parseval_files(args.gold, args.test, parameters)
    cli.print_result(report.text(), report.to_dict(), args.json)


if __name__ == "__main__":
    cli.run(main)
