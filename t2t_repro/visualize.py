"""Writes an HTML page that shows how a model translates.

The page of a sentence shows every head of every layer of all three attentions, and the
tree of the beam search with its scores. With --live the page contains the model, which
translates any sentence in the browser. Neither page needs a network connection.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_repro.command_line import cli, model_flags
from t2t_repro.runs.run_metadata import require_model
from t2t_repro.system.atomic_file import new_text_file
from t2t_repro.system.errors import UserError

if TYPE_CHECKING:
    from t2t_repro.translation.loading import Loaded


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(__doc__)
    model_flags.add_model_flags(parser, several=False)
    add = parser.add_argument
    add(
        "--text",
        action="append",
        help="sentence to translate; with --live an example of the page; repeatable "
        "(default: sentences of the test split)",
    )
    add(
        "--live",
        action="store_true",
        help="embed the model in the page (at most 32 million parameters)",
    )
    add(
        "--translation",
        help="translation whose attention is shown (default: the model's)",
    )
    add("--output", type=cli.path, default="attention.html", help="HTML file")
    model_flags.add_search_flags(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, translates the sentence and writes the page."""
    args = _parser().parse_args(argv)
    if args.text is None and not args.live:
        raise UserError("--text is missing; give a sentence, or --live")
    if args.text and len(args.text) > 1 and not args.live:
        raise UserError("--text is given more than once; several sentences need --live")
    if args.translation is not None and args.live:
        raise UserError(
            "--translation cannot be combined with --live; type it into the page"
        )
    require_model(Path(args.model_dir))
    cli.start_models(args.verbose, args.no_fast)
    from t2t_repro.analysis.inspect_translation import MOST_HYPOTHESES, check_sentence
    from t2t_repro.runs.model_dir import ModelDir
    from t2t_repro.translation.loading import load_models

    for text in args.text or ():
        check_sentence(text, "--text")
    if args.translation is not None:
        check_sentence(args.translation, "--translation")
    directory = ModelDir(Path(args.model_dir))
    beam_size = args.beam_size or directory.hparams().beam_size
    if beam_size > MOST_HYPOTHESES and not args.live:
        raise UserError(
            f"a page cannot show a beam of {beam_size} hypotheses; give "
            f"--beam_size {MOST_HYPOTHESES} or less"
        )
    # Opened first, so that a missing folder is reported before the model is loaded.
    with new_text_file(args.output) as file:
        loaded = load_models(directory, [args.checkpoint])
        model_dir, checkpoint = loaded.model_dirs[0].path, Path(loaded.checkpoints[0])
        name = model_dir.resolve().name
        if args.checkpoint != "best":
            name += f" ({checkpoint.name})"
        make = _live_page if args.live else _attention_page
        page, message, values = make(args, loaded, name)
        file.write(page)
    result = {"output": args.output, "checkpoint": str(checkpoint)} | values
    cli.print_result(message, result, args.json)


def _attention_page(
    args: Namespace, loaded: Loaded, name: str
) -> tuple[str, str, dict[str, Any]]:
    """Returns the page of one translation, a message, and the values for --json."""
    from t2t_repro.analysis.inspect_translation import inspect_translation
    from t2t_repro.analysis.page import attention_page

    search = loaded.search(beam_size=args.beam_size, alpha=args.alpha)
    inspection = inspect_translation(
        *(loaded.models[0], loaded.tokenizer, args.text[0], args.translation, search),
        loaded.splitter,
    )
    cuts = [f"({cut})" for cut in inspection.cuts]
    message = "\n".join([inspection.found, *cuts, f"Page: {args.output}"])
    values = {
        "text": inspection.text,
        "translation": inspection.found,
        "score": inspection.beam.results[0].score,
        "shown": inspection.translation,
        "cuts": inspection.cuts,
    }
    return attention_page(inspection, loaded.tokenizer, name), message, values


def _live_page(
    args: Namespace, loaded: Loaded, name: str
) -> tuple[str, str, dict[str, Any]]:
    """Returns the page with the model, a message, and the values for --json."""
    from t2t_repro.serving.exports.export_format import ExportOptions
    from t2t_repro.serving.exports.live_page import LIVE_PAGE

    options = ExportOptions(beam_size=args.beam_size, alpha=args.alpha, model_name=name)
    page = LIVE_PAGE.page(loaded, options, args.text or ())
    megabytes = len(page.encode()) / 1e6
    return page, f"Page: {args.output} ({megabytes:.1f} MB)", {"text": args.text}


if __name__ == "__main__":
    cli.run(main)
