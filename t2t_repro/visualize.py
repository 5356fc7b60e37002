"""Shows what a model does while it translates, as one HTML page."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from t2t_repro.command_line import cli, model_flags
from t2t_repro.runs.run_metadata import require_model
from t2t_repro.system.atomic_file import write_text_atomically
from t2t_repro.system.errors import UserError


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(
        "Translates one sentence and writes a page, complete in itself, to open in a "
        "browser: every head of every layer of all three attentions, and the tree of "
        "the beam search with its scores. With --live the page holds the model itself, "
        "which translates any sentence in the browser, without a network."
    )
    model_flags.add_model_flags(parser, several=False)
    parser.add_argument(
        "--text", help="the sentence; with --live the first one, or none"
    )
    parser.add_argument(
        "--live",
        action="store_true",
        help="put the model into the page (32 million parameters at most)",
    )
    parser.add_argument(
        "--translation",
        help="whose attention is shown; without it, that of the model's own",
    )
    parser.add_argument(
        "--output", type=cli.not_empty, default="attention.html", help="the page"
    )
    model_flags.add_search_flags(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, looks at the sentence and writes the page."""
    args = _parser().parse_args(argv)
    output = Path(args.output)
    if args.text is None and not args.live:
        raise UserError("--text is missing; give a sentence, or --live")
    if args.translation is not None and args.live:
        raise UserError("--translation is not for --live; type it into the page")
    _check_output(output)
    require_model(Path(args.model_dir))
    cli.start_models(args.verbose, args.no_fast)
    if args.live:
        _write_live_page(args, output)
        return
    from t2t_repro.analysis.inspect_translation import (
        MOST_HYPOTHESES,
        check_sentence,
        inspect_translation,
    )
    from t2t_repro.analysis.page import attention_page
    from t2t_repro.runs.model_dir import ModelDir
    from t2t_repro.translation.loading import load_models

    check_sentence(args.text, "--text")
    if args.translation is not None:
        check_sentence(args.translation, "--translation")
    directory = ModelDir(Path(args.model_dir))
    beam_size = args.beam_size or directory.hparams().beam_size
    if beam_size > MOST_HYPOTHESES:
        raise UserError(
            f"a beam of {beam_size} is more than a page can show; give "
            f"--beam_size {MOST_HYPOTHESES} or less"
        )
    loaded = load_models(directory, [args.checkpoint])
    search = loaded.search(beam_size=args.beam_size, alpha=args.alpha)
    seen = inspect_translation(
        loaded.models[0], loaded.tokenizer, args.text, args.translation, search
    )
    home, checkpoint = loaded.model_dirs[0].path, Path(loaded.checkpoints[0])
    name = f"{home.resolve().name} ({checkpoint.name})"
    write_text_atomically(output, attention_page(seen, loaded.tokenizer, name))
    cli.print_result(
        "\n".join([seen.found, *(f"({cut})" for cut in seen.cuts), f"Page: {output}"]),
        {
            "output": str(output),
            "checkpoint": str(checkpoint),
            "text": seen.text,
            "translation": seen.found,
            "score": seen.beam.results[0].score,
            "shown": seen.translation,
            "cuts": seen.cuts,
        },
        args.json,
    )


def _write_live_page(args: argparse.Namespace, output: Path) -> None:
    """Writes the page that holds the model."""
    from t2t_repro.analysis.inspect_translation import check_sentence
    from t2t_repro.live_page.page import live_page
    from t2t_repro.runs.model_dir import ModelDir
    from t2t_repro.translation.loading import load_models, search_of

    text = args.text or ""
    if text:
        check_sentence(text, "--text")
    directory = ModelDir(Path(args.model_dir))
    loaded = load_models(directory, [args.checkpoint])
    search = search_of(
        loaded.hparams, loaded.tokenizer, beam_size=args.beam_size, alpha=args.alpha
    )
    hparams = (
        loaded.model_dirs[0]
        .hparams()
        .replace(
            beam_size=search.beam_size,
            alpha=search.alpha,
            decode_extra_length=search.extra_length,
        )
    )
    home, checkpoint = loaded.model_dirs[0].path, Path(loaded.checkpoints[0])
    file_name = loaded.tokenizer.file_name
    vocabulary = (directory.path / file_name).read_bytes()
    name = f"{home.resolve().name} ({checkpoint.name})"
    page = live_page(loaded.models[0], hparams, vocabulary, file_name, name, text)
    write_text_atomically(output, page)
    cli.print_result(
        f"Page: {output} ({len(page.encode()) / 1e6:.1f} MB)",
        {"output": str(output), "checkpoint": str(checkpoint), "text": text},
        args.json,
    )


def _check_output(output: Path) -> None:
    """Refuses a file that cannot be written, before the work."""
    if output.is_dir():
        raise UserError(f"--output {output} is a folder; name a file in it")
    if not output.parent.is_dir():
        raise UserError(f"--output {output}: the folder {output.parent} does not exist")


if __name__ == "__main__":
    cli.run(main)
