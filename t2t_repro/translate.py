"""Translates text, one sentence per line, or several with --split_sentences.

Each input line gives one output line, in the same order. Documents, such as subtitles
and PO files, are recognized by the ending of --input_file: their texts are translated,
and everything else stays. After an interruption, the same command resumes if input and
output are files.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from t2t_repro.command_line import (
    cli,
    model_flags,
    translate_document,
    translate_flags,
)
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
    translate_document.add_flags(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, translates the input and writes the output."""
    args = _parser().parse_args(argv)
    require_model(Path(args.model_dir))
    document_format = translate_document.select_format(args)
    cli.start_models(args.verbose, args.no_fast)
    if document_format is None:
        translate_text(args, _load)
        return
    from t2t_repro.runs.model_dir import ModelDir

    languages = ModelDir(Path(args.model_dir)).provenance()
    translate_document.translate_document(args, document_format, languages, _load)


def _load(args: Any, lines: int | None) -> Prepared:
    from t2t_repro.runs.model_dir import ModelDir
    from t2t_repro.translation.alignments import Aligner
    from t2t_repro.translation.build import (
        build,
        build_translator,
        choose_compilation,
        load_to_translate,
    )
    from t2t_repro.translation.options import spell_in_commands

    directory = ModelDir(Path(args.model_dir))
    options = translate_flags.read_options(args, directory.hparams())
    is_typed = args.input_file == "-" and sys.stdin.isatty()
    compile_after = choose_compilation(
        options,
        args.precision,
        None if is_typed else lines or 0,
        args.batch_size,
        spell_in_commands,
    )
    compiled = compile_after is not None
    if compile_after == 0 and args.xla is None:
        cli.log(
            f"compiling the search for {lines:,} lines in batches of one (disable with "
            "--no-xla)"
        )
    precision = model_flags.select_precision(args)
    loaded = load_to_translate(directory, args.checkpoint, *precision, compiled)
    # The attention of an ensemble's first model aligns the words.
    aligner = Aligner(loaded.models[0], loaded.tokenizer, args.alignment_layer)
    translator = build_translator(loaded, options, compile_after)
    pipeline = build(loaded, options, aligner, translator)
    terms, summary = pipeline.terms, None
    if terms is not None:
        summary = terms.summary
        if terms.unwritable:
            cli.log(
                f"{args.terms}: the model's vocabulary cannot spell "
                f"{', '.join(terms.unwritable)}; these terms are not required"
            )
    align = aligner.align_hypotheses if args.alignment else None
    return Prepared(
        *(pipeline, translator, precision, loaded.weight_bits, align, compiled),
        summary,
    )


if __name__ == "__main__":
    cli.run(main)
