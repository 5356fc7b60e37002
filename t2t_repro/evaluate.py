"""Scores a model, or finished translations, on a split or on any files.

The model translates by beam search. Printed are BLEU, chrF, chrF++ and TER as sacreBLEU
computes them, and the paper's own BLEU; of a parser, F1 and EVALB's other figures.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_repro.command_line import cli, model_flags
from t2t_repro.problems.problem import SPLITS
from t2t_repro.runs.run_metadata import META_FILE, require_model
from t2t_repro.system.errors import UserError

if TYPE_CHECKING:
    from t2t_repro.evaluation.test_sets import TestSet


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(__doc__)
    model_flags.add_decoding_flags(parser, model_required=False)
    parser.add_argument(
        "--split", choices=SPLITS, help="train, val or test (default: test)"
    )
    parser.add_argument(
        "--source_file", type=cli.not_empty, help="translate this text, not a split"
    )
    parser.add_argument(
        "--reference_file",
        nargs="+",
        metavar="FILE",
        help="what the translations are compared with; several count as alternatives",
    )
    parser.add_argument(
        "--hypothesis_file", type=cli.not_empty, help="finished translations to score"
    )
    parser.add_argument(
        "--target_lang", help="language for the paper's BLEU (default: the model's)"
    )
    parser.add_argument(
        "--compare",
        metavar="OTHER",
        help="folder of a model, or translations, compared by a paired bootstrap",
    )
    parser.add_argument(
        "--comet_dir",
        type=cli.not_empty,
        help="folder for COMET's input files; the command to run on them is printed",
    )
    parser.add_argument(
        "--output_file", type=cli.not_empty, help="write the translations here, too"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, translates if need be, and prints the figures."""
    parser = _parser()
    args = parser.parse_args(argv)
    _check_flags(parser, args)
    test_set = _test_set(args)
    from t2t_repro.evaluation.metrics import ORIGINAL_QUOTES, figures, paired_bootstrap
    from t2t_repro.evaluation.test_sets import write_for_comet
    from t2t_repro.system.atomic_file import new_text_file

    # Opened first: a folder that does not exist is better noticed now than later.
    with new_text_file(args.output_file or os.devnull) as output:
        given = args.hypothesis_file or args.model_dir
        lines, text, values = _translations(args, given, test_set)
        output.writelines(f"{line}\n" for line in lines)
    if not test_set.is_trees:
        found = figures(lines, test_set.references, test_set.target_lang)
        text = [*(figure.text() for figure in found), *text]
        values["metrics"] = [figure._asdict() for figure in found]
        values |= {"bleu": found[0].score, "signature": found[0].signature}
        if test_set.target_lang:
            paper = found[1]
            values |= {"paper_bleu": paper.score, "paper_signature": paper.signature}
            if found[2].name == ORIGINAL_QUOTES:
                values["paper_bleu_original_quotes"] = found[2].score
                values["paper_signature_original_quotes"] = found[2].signature
    values["split"] = None if args.reference_file else args.split or "test"
    text.append(f"{values['checkpoint']} on {test_set.description}")
    if args.compare:
        others, _, other = _translations(args, args.compare, test_set)
        differences = paired_bootstrap(lines, others, test_set.references)
        text.append(f"beside {other['checkpoint']}:")
        text += [difference.text() for difference in differences]
        values["compared_with"] = other["checkpoint"]
        values["differences"] = [difference.to_dict() for difference in differences]
    if args.comet_dir:
        command = write_for_comet(Path(args.comet_dir), test_set, lines)
        text.append(command)
        values["comet_command"] = command
    cli.print_result("\n".join(text), values, args.json)


def _check_flags(parser: cli.ArgumentParser, args: Namespace) -> None:
    """Refuses flags that contradict each other, or lack one."""
    if not args.model_dir and not args.hypothesis_file:
        parser.error("--model_dir is needed, or translations as --hypothesis_file")
    if args.reference_file:
        if args.split:
            parser.error("--split or --reference_file, not both")
        if not args.source_file and (args.comet_dir or not args.hypothesis_file):
            parser.error("--source_file is needed")
    elif args.source_file or not args.model_dir:
        parser.error("--reference_file is needed")
    if args.hypothesis_file and args.output_file:
        parser.error("--output_file is for what --model_dir translates")


def _test_set(args: Namespace) -> TestSet:
    """Reads the split or the files."""
    language, directory = args.target_lang, None
    if args.model_dir:
        require_model(Path(args.model_dir))
        cli.start_models(args.verbose, args.no_fast)
        from t2t_repro.runs.model_dir import ModelDir

        directory = ModelDir(Path(args.model_dir))
        provenance = directory.provenance()
        language = language or provenance.target_lang
        _check_output(args.output_file, provenance.data_dir)
    from t2t_repro.evaluation import test_sets

    if directory is None or args.reference_file:
        found = test_sets.of_files(args.source_file, args.reference_file, language)
    else:
        found = test_sets.of_split(directory.problem(), args.split or "test")
    if found.is_trees and (args.hypothesis_file or args.compare or args.comet_dir):
        raise UserError(
            f"--model_dir {args.model_dir} is a parser: finished trees are scored by "
            "python -m t2t_repro.parseval"
        )
    return found


def _translations(
    args: Namespace, given: str, test_set: TestSet
) -> tuple[list[str], list[str], dict[str, Any]]:
    """Reads translations from a file, or has a model make them.

    Returns them, what is told of how they came about, and the same for programs.
    """
    if not (Path(given) / META_FILE).exists():
        from t2t_repro.evaluation.test_sets import read_translations

        return read_translations(given, test_set), [], {"checkpoint": given}
    if test_set.sources is None:
        raise UserError(f"{given} is a model: it needs --source_file to translate")
    cli.start_models(args.verbose, args.no_fast)
    from t2t_repro.evaluation import split_scores
    from t2t_repro.runs.model_dir import ModelDir
    from t2t_repro.translation.loading import load_models
    from t2t_repro.translation.parallel_batches import give_each_batch_a_core

    give_each_batch_a_core()
    directory = ModelDir(Path(given))
    language = test_set.target_lang or directory.provenance().target_lang
    beam_size = args.beam_size or directory.hparams().beam_size
    is_own = given == args.model_dir
    loaded = load_models(
        directory,
        args.checkpoint if is_own else "best",
        *model_flags.precision_of(args),
    )
    translator = loaded.translator(
        beam_size=args.beam_size,
        alpha=args.alpha,
        nbest=split_scores.num_hypotheses(language, beam_size),
    )
    checkpoint = ", ".join(loaded.checkpoints)
    if test_set.is_trees:
        found, translations = split_scores.evaluate(
            translator, test_set.pairs(), language, args.batch_size
        )
        told, values = found.text(), found.to_dict()
    else:
        translations, seconds = split_scores.translate(
            translator, test_set.sources, args.batch_size
        )
        tokens = sum(translation.tokens for translation in translations)
        told = split_scores.speed(len(translations), tokens, seconds)
        values = {"sentences": len(translations), "tokens": tokens, "seconds": seconds}
    lines = [translation.text for translation in translations]
    return lines, [told], values | {"checkpoint": checkpoint}


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
