"""Parses text, one sentence per line.

Each input line gives one tree over exactly its words, in the same order. Sentences must
be tokenized as in the treebank: He does n't know . After an interruption, the same
command resumes if input and output are files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
    translate_flags.add_extra_length(parser, "an output")
    # The other flags of `translate` do not apply to trees and keep their defaults.
    translate_parser = cli.ArgumentParser("")
    translate_flags.add_flags(translate_parser)
    defaults = vars(translate_parser.parse_args([])) | {"scores": False}
    parser.set_defaults(**{k: v for k, v in defaults.items() if k != "extra_length"})
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, then the input's sentences, and writes the trees."""
    args = _parser().parse_args(argv)
    require_model(Path(args.model_dir))
    cli.start_models(args.verbose, args.no_fast)
    translate_text(args, _load)


def _load(args: Any, lines: int | None) -> Prepared:
    """Loads the model as a parser; raises UserError if it was not trained to parse."""
    from t2t_repro.runs.model_dir import ModelDir
    from t2t_repro.translation.build import build_translator, load_to_translate
    from t2t_repro.translation.parser import Parser, check_is_parser

    directory = ModelDir(Path(args.model_dir))
    check_is_parser(directory)
    hparams = directory.hparams()
    # If the best hypothesis is not a tree over the words, a lower-ranked one may be.
    nbest = args.beam_size or hparams.beam_size
    options = replace(translate_flags.read_options(args, hparams), nbest=nbest)
    precision = model_flags.select_precision(args)
    loaded = load_to_translate(directory, args.checkpoint, *precision)
    translator = build_translator(loaded, options)
    trees = Parser(translator)
    return Prepared(
        trees, translator, precision, loaded.weight_bits, summary=trees.summary
    )


if __name__ == "__main__":
    cli.run(main)
