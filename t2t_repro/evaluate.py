"""Scores a model, or existing translations, on a split or on any files.

A model translates by beam search. The command prints sacreBLEU's BLEU, chrF, chrF++ and
TER, and BLEU as the paper computed it. For a parser it prints F1 and the other figures
of EVALB.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
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
    add = parser.add_argument
    add(
        "--split",
        choices=SPLITS,
        help="split of the model's problem to score (default: test)",
    )
    add(
        "--source_file",
        type=cli.path,
        help="sentences to translate instead of a split: text, or a file of pairs such "
        "as test.xml",
    )
    add(
        "--reference_file",
        type=cli.path,
        nargs="+",
        metavar="FILE",
        help="reference translations, text or a file of pairs; further files add "
        "alternative references",
    )
    add(
        "--reference_name",
        nargs="+",
        metavar="NAME",
        help="translators whose references to read from a test set of WMT (default: "
        "the first one in the file)",
    )
    add("--hypothesis_file", type=cli.path, help="existing translations to score")
    _add_score_flags(parser)
    add(
        "--comet_dir",
        type=cli.path,
        help="folder for COMET's input files; the command to run on them is printed",
    )
    add(
        "--output_file",
        type=cli.path,
        help="file to which the translations are also written",
    )
    return parser


def _add_score_flags(parser: cli.ArgumentParser) -> None:
    """Adds the flags of the scores and of the comparison."""
    add = parser.add_argument
    add(
        "--source_lang",
        help="source language, which files of pairs need (default: the model's)",
    )
    add(
        "--target_lang",
        help="target language, which determines BLEU's tokenizer (default: the "
        "model's)",
    )
    add(
        "--tokenize",
        metavar="NAME",
        help="sacreBLEU's tokenizer for BLEU (default: zh for Chinese, ja-mecab for "
        "Japanese, ko-mecab for Korean, char for other languages without spaces, "
        "else 13a)",
    )
    add("--lowercase", action="store_true", help="ignore case in BLEU and chrF")
    add(
        "--compare",
        type=cli.path,
        metavar="OTHER",
        help="model directory, or file of translations, to compare with by paired "
        "bootstrap",
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, translates unless translations are given, and prints scores."""
    parser = _parser()
    args = parser.parse_args(argv)
    _check_flags(parser, args)
    test_set = _test_set(args)
    from t2t_repro.evaluation.metrics import BLEU_KEYS, figures, paired_bootstrap
    from t2t_repro.evaluation.test_sets import write_for_comet
    from t2t_repro.system.atomic_file import new_text_file

    tokenize = _tokenizer(args, test_set)
    _check_late_flags(args, test_set)
    # Opened first, so that a missing folder is reported before the translation.
    with new_text_file(args.output_file or os.devnull) as output:
        origin = args.hypothesis_file or args.model_dir
        lines, text, values = _translations(args, origin, test_set)
        output.writelines(f"{line}\n" for line in lines)
    if not test_set.is_trees:
        metrics = figures(
            lines, test_set.references, test_set.target_lang, tokenize, args.lowercase
        )
        text = [*(metric.text() for metric in metrics), *text]
        values["metrics"] = [metric._asdict() for metric in metrics]
        for name, *figure in metrics:
            values |= zip(BLEU_KEYS.get(name, ()), figure, strict=False)
    values["split"] = None if args.reference_file else args.split or "test"
    text.append(f"{values['checkpoint']} on {test_set.description}")
    if args.compare:
        others, _, other = _translations(args, args.compare, test_set)
        differences = paired_bootstrap(
            lines,
            others,
            test_set.references,
            tokenize=tokenize,
            lowercase=args.lowercase,
        )
        text.append(f"compared with {other['checkpoint']}:")
        text += [difference.text() for difference in differences]
        values["compared_with"] = other["checkpoint"]
        values["differences"] = [difference.to_dict() for difference in differences]
    if args.comet_dir:
        command = write_for_comet(Path(args.comet_dir), test_set, lines)
        text.append(command)
        values["comet_command"] = command
    cli.print_result("\n".join(text), values, args.json)


def _check_flags(parser: cli.ArgumentParser, args: Namespace) -> None:
    """Rejects contradictory or missing flags."""
    if not args.model_dir and not args.hypothesis_file:
        parser.error("--model_dir or --hypothesis_file is required")
    if args.reference_file:
        if args.split:
            parser.error("give --split or --reference_file, not both")
        if not args.source_file and (args.comet_dir or not args.hypothesis_file):
            parser.error("--source_file is required")
    elif args.source_file or args.reference_name or not args.model_dir:
        parser.error("--reference_file is required")
    if args.hypothesis_file and args.output_file:
        parser.error("--output_file cannot be combined with --hypothesis_file")


def _test_set(args: Namespace) -> TestSet:
    """Returns the test set: a split of the model's problem, or the given files."""
    languages = args.source_lang, args.target_lang
    directory = None
    if args.model_dir:
        require_model(Path(args.model_dir))
        cli.start_models(args.verbose, args.no_fast)
        from t2t_repro.runs.model_dir import ModelDir

        directory = ModelDir(Path(args.model_dir))
        provenance = directory.provenance()
        languages = (
            languages[0] or provenance.source_lang,
            languages[1] or provenance.target_lang,
        )
        _check_not_in_corpus(args.output_file, provenance.data_dir)
    from t2t_repro.evaluation import test_sets

    if directory is None or args.reference_file:
        test_set = test_sets.read_files(
            args.source_file,
            args.reference_file,
            languages,
            args.reference_name or (None,),
        )
    else:
        test_set = test_sets.load_split(directory.problem(), args.split or "test")
    if test_set.is_trees and (args.hypothesis_file or args.compare or args.comet_dir):
        raise UserError(
            f"--model_dir {args.model_dir} is a parser, but --hypothesis_file, "
            "--compare and --comet_dir are for translations; score existing trees with "
            "python -m t2t_repro.parseval"
        )
    return test_set


def _tokenizer(args: Namespace, test_set: TestSet) -> str:
    """Returns the tokenizer of BLEU; prints a line if it or a reference is unusual."""
    from t2t_repro.evaluation.bleu import check_tokenizer, select_tokenizer
    from t2t_repro.evaluation.references import describe_empty_references

    if test_set.is_trees and (args.tokenize or args.lowercase):
        raise UserError("--tokenize and --lowercase are for translations, not trees")
    note = describe_empty_references(test_set.references)
    if note and not test_set.is_trees:
        cli.log(note)
    if args.tokenize:
        return check_tokenizer(args.tokenize)
    tokenizer = select_tokenizer(test_set.target_lang, test_set.references[0])
    if tokenizer.note and not test_set.is_trees:
        cli.log(tokenizer.note)
    return tokenizer.name


def _check_late_flags(args: Namespace, test_set: TestSet) -> None:
    """Checks the flags that are used after the translation, which may take long."""
    if args.comet_dir and Path(args.comet_dir).is_file():
        raise UserError(f"--comet_dir {args.comet_dir} is a file; name a folder")
    other = args.compare and Path(args.compare)
    if not other:
        return
    if (other / META_FILE).exists():
        _require_sources(args.compare, test_set)
        cli.start_models(args.verbose, args.no_fast)
        from t2t_repro.runs.model_dir import ModelDir

        ModelDir(other).tokenizer()
        ModelDir(other).checkpoint()
        return
    if other.is_dir():
        raise UserError(
            f"--compare {other} is a folder without a model; give a model directory or "
            "a file of translations"
        )
    from t2t_repro.evaluation.test_sets import read_translations

    read_translations(args.compare, test_set)


def _require_sources(model_dir: str, test_set: TestSet) -> list[str]:
    """Returns the sentences to translate; UserError if the test set has none."""
    if test_set.sources is None:
        raise UserError(
            f"--source_file is missing: the model {model_dir} needs sentences to "
            "translate"
        )
    return test_set.sources


def _translations(
    args: Namespace, origin: str, test_set: TestSet
) -> tuple[list[str], list[str], dict[str, Any]]:
    """Reads translations from a file, or translates the test set with a model.

    `origin` is the file or the model directory. The function returns the translations,
    lines to print about speed or parses, and the values of these lines for --json.
    """
    if not (Path(origin) / META_FILE).exists():
        from t2t_repro.evaluation.test_sets import read_translations

        return read_translations(origin, test_set), [], {"checkpoint": origin}
    sources = _require_sources(origin, test_set)
    cli.start_models(args.verbose, args.no_fast)
    from t2t_repro.evaluation import split_scores
    from t2t_repro.runs.model_dir import ModelDir
    from t2t_repro.translation.build import build_translator, load_to_translate
    from t2t_repro.translation.options import TranslationOptions

    directory = ModelDir(Path(origin))
    language = test_set.target_lang or directory.provenance().target_lang
    beam_size = args.beam_size or directory.hparams().beam_size
    # --checkpoint applies to --model_dir, not to the model of --compare.
    loaded = load_to_translate(
        directory,
        args.checkpoint if origin == args.model_dir else "best",
        *model_flags.select_precision(args),
    )
    options = TranslationOptions(
        beam_size=args.beam_size,
        alpha=args.alpha,
        nbest=split_scores.num_hypotheses(language, beam_size),
    )
    translator = build_translator(loaded, options)
    text: list[str] = []
    if test_set.is_trees:
        scores, translations = split_scores.evaluate(
            translator, test_set.pairs(), language, args.batch_size
        )
        text, values = [scores.figures()], asdict(scores)
    else:
        translations, seconds = split_scores.translate(
            translator, sources, args.batch_size
        )
        tokens = sum(translation.best.tokens for translation in translations)
        values = {"sentences": len(translations), "tokens": tokens, "seconds": seconds}
    speed = split_scores.speed(values["sentences"], values["tokens"], values["seconds"])
    lines = [translation.text for translation in translations]
    return lines, [*text, speed], values | {"checkpoint": ", ".join(loaded.checkpoints)}


def _check_not_in_corpus(output_file: str | None, data_dir: str | None) -> None:
    """Rejects an output file that would overwrite a file of the corpus."""
    if output_file is None or data_dir is None or not os.path.isfile(output_file):
        return
    if Path(data_dir).resolve() in Path(output_file).resolve().parents:
        raise UserError(
            f"--output_file {output_file} would overwrite a file of --data_dir "
            f"{data_dir}; name another file"
        )


if __name__ == "__main__":
    cli.run(main)
