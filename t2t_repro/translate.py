"""Translates text, one sentence per line, or several with --split_sentences.

Each input line gives one output line, in the same order. After an interruption, the
same command resumes if input and output are files.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from t2t_repro.command_line import cli, model_flags, translate_flags
from t2t_repro.command_line.translate_text import (
    Prepared,
    add_text_flags,
    translate_text,
)
from t2t_repro.runs.run_metadata import require_model


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(__doc__, json_flag=False)
    add_text_flags(parser)
    parser.add_argument(
        "--scores",
        action="store_true",
        help="write the score and a tab before each translation",
    )
    translate_flags.add_flags(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, translates the input and writes the output."""
    args = _parser().parse_args(argv)
    require_model(Path(args.model_dir))
    cli.start_models(args.verbose, args.no_fast)
    translate_text(args, _load)


def _load(args: Any, lines: int | None) -> Prepared:
    from t2t_repro.runs.model_dir import ModelDir
    from t2t_repro.translation.alignments import Aligner
    from t2t_repro.translation.loading import load_models
    from t2t_repro.translation.parallel_batches import give_each_batch_a_core
    from t2t_repro.translation.placeholders import (
        Placeholders,
        PlaceholderTranslator,
    )
    from t2t_repro.translation.terms import TermTranslator, read_terms
    from t2t_repro.translation.text_translator import TextTranslator
    from t2t_repro.translation.wrapper import AnyTranslator

    directory = ModelDir(Path(args.model_dir))
    hparams = directory.hparams()
    placeholders = Placeholders(args.placeholders or (), "--placeholders")
    compile_after = translate_flags.compile_after(args, lines)
    compiled = compile_after is not None
    give_each_batch_a_core(compiled)
    changes = translate_flags.search_changes(args, hparams)
    precision = model_flags.precision_of(args)
    loaded = load_models(directory, args.checkpoint, *precision)
    # The attention of an ensemble's first model aligns the words.
    aligner = Aligner(loaded.models[0], loaded.tokenizer, args.alignment_layer)
    plain = loaded.translator(compile_after, **changes)
    translator: AnyTranslator = plain
    summary = None
    if args.terms is not None:
        required = read_terms(Path(args.terms))
        placeholders.check_terms(required)
        translator = terms = TermTranslator(plain, required)
        summary = terms.summary
        if terms.unwritable:
            cli.log(
                f"{args.terms}: the model's vocabulary cannot spell "
                f"{', '.join(terms.unwritable)}; these terms are not required"
            )
    if args.prefix_file is None:
        translator = keeper = PlaceholderTranslator(translator, placeholders, aligner)
        if not any(getattr(args, flag) for flag in translate_flags.UNDIVIDED):
            splitter = loaded.splitter()
            translator = TextTranslator(keeper, splitter, args.split_sentences)
    align = aligner if args.alignment else None
    return Prepared(translator, precision, align, compiled, summary)


if __name__ == "__main__":
    cli.run(main)
