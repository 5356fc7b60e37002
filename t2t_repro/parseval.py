"""Scores parses against a treebank, as EVALB does.

It compares their labelled brackets: recall, precision, F1, complete match and tagging
accuracy in percent, as EVALB with COLLINS.prm. They are given three times: over the
sentences whose parse can be read and has the right words (as EVALB), over all
sentences, failed ones counted as 0, and over short sentences.
"""

from collections.abc import Sequence

from t2t_repro.command_line import cli


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(__doc__)
    parser.add_argument(
        "--gold", required=True, help="the treebank's trees, one a line (.gz too)"
    )
    parser.add_argument(
        "--test", required=True, help="parses, one a line, empty if there is none"
    )
    parser.add_argument(
        "--param_file",
        help="EVALB parameter file (*.prm; default: COLLINS.prm's values)",
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
