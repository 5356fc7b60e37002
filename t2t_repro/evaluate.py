"""Scores a model on a split of its problem."""

import os
from collections.abc import Sequence
from pathlib import Path

from t2t_repro.command_line import cli
from t2t_repro.problems.problem import SPLITS
from t2t_repro.runs.provenance import require_model
from t2t_repro.system.errors import UserError


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(
        "Translates a split by beam search and prints sacreBLEU with its signature "
        "and the paper's own figure; of a parser, F1 and what else EVALB gives."
    )
    cli.add_decoding_flags(parser)
    parser.add_argument(
        "--split", default="test", choices=SPLITS, help="train, val or test"
    )
    parser.add_argument(
        "--output_file", type=cli.not_empty, help="write the translations here, too"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, translates the split and prints its score."""
    args = _parser().parse_args(argv)
    require_model(Path(args.model_dir))
    cli.start_models(args.verbose)
    from t2t_repro.evaluation.split_scores import evaluate, hypotheses_wanted
    from t2t_repro.runs.model_dir import ModelDir
    from t2t_repro.system.text_files import new_text_file
    from t2t_repro.translation.loading import load_models
    from t2t_repro.translation.side_by_side import give_each_batch_a_core

    give_each_batch_a_core()
    directory = ModelDir(Path(args.model_dir))
    problem = directory.problem()
    _check_output(args.output_file, directory.provenance().data_dir)
    pairs = list(problem.pairs(args.split))
    beam_size = args.beam_size or directory.hparams().beam_size
    # Opened first: a folder that does not exist is better noticed now than later.
    with new_text_file(args.output_file or os.devnull) as output:
        loaded = load_models(directory, args.checkpoint, args.precision)
        translator = loaded.translator(
            beam_size=args.beam_size,
            alpha=args.alpha,
            nbest=hypotheses_wanted(problem.target_lang, beam_size),
        )
        found, translations = evaluate(
            translator, pairs, problem.target_lang, args.batch_size
        )
        output.writelines(f"{translation.text}\n" for translation in translations)
    checkpoint = ", ".join(loaded.checkpoints)
    where = f"{checkpoint} on {problem.description(args.split)}"
    values = found.to_dict() | {"split": args.split, "checkpoint": checkpoint}
    cli.print_result(f"{found.text()}\n{where}", values, args.json)


def _check_output(output_file: str | None, data_dir: str | None) -> None:
    """Refuses to replace a file of the corpus by the translations."""
    if output_file is None or data_dir is None or not os.path.isfile(output_file):
        return
    if Path(data_dir).resolve() in Path(output_file).resolve().parents:
        raise UserError(
            f"--output_file {output_file} is there, among the data of --data_dir "
            f"{data_dir}; name another file"
        )


if __name__ == "__main__":
    cli.run(main)
