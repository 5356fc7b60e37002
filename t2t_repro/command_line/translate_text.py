"""Common code of `translate` and `parse`, from the input to the output."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from t2t_repro.command_line import cli, model_flags
from t2t_repro.command_line.part_flags import add_part_flags, parse_part
from t2t_repro.system.errors import UserError, format_count

if TYPE_CHECKING:
    from t2t_repro.texts.pipeline import TextTranslator
    from t2t_repro.translation.translation_files import Align, InputText, Output
    from t2t_repro.translation.translator import Translator


class Prepared(NamedTuple):
    """A translator and its settings.

    Attributes:
        translator: Translates the texts.
        lines: Translates their lines.
        precision: Precision of its matmuls.
        weight_bits: Number of bits of int8 weights; None for other precisions.
        align: Function that aligns words; None without --alignment.
        compiled: Whether XLA compiles the search.
        summary: Function that returns a line to print at the end; None for no line.
    """

    translator: TextTranslator
    lines: Translator
    precision: model_flags.Precision
    weight_bits: int | None
    align: Align | None = None
    compiled: bool = False
    summary: Callable[[], str] | None = None


def add_text_flags(parser: cli.ArgumentParser) -> None:
    """Adds the flags of the model, the search, the input and the output."""
    model_flags.add_decoding_flags(parser)
    parser.add_argument(
        "--input_file",
        type=cli.path,
        default="-",
        help="input text; - for standard input",
    )
    parser.add_argument(
        "--output_file",
        type=cli.path,
        default="-",
        help="output file; - for standard output",
    )
    parser.add_argument(
        "--window",
        type=cli.int_range(1),
        default=4096,
        help="lines that are read, sorted by length and written together; always 1 on "
        "a terminal",
    )
    add_part_flags(parser, "lines of --input_file, divided between windows")


def translate_text(
    args: Any,
    load: Callable[[Any, int | None], Prepared],
    text: InputText | None = None,
    finish: Callable[[Path], None] | None = None,
) -> None:
    """Translates the input, and resumes where an interrupted run stopped.

    Args:
        args: Flags of the command.
        load: Function from the flags and the number of lines (None if unknown) to a
            translator.
        text: Text to translate; None for `args.input_file`.
        finish: Function that receives the path of the translated lines of a regular
            file. If it raises, the run can be resumed.

    Raises:
        UserError: The flags, the text or the model cannot be used.
    """
    from t2t_repro.command_line.progress_bar import progress_bar
    from t2t_repro.translation.translation_files import (
        InputText,
        TranslationState,
        nbest_record,
        open_output,
        scored_record,
        text_record,
        translate_windows,
    )

    check_names(args)
    part = parse_part(args)
    text = text or InputText(args.input_file, part, args.window)
    prefixes = _prefixes(args, text, part)
    prepared = load(args, text.lines)
    translator = prepared.translator
    interactive = args.input_file == "-" and sys.stdin.isatty()
    show_progress = not interactive and (
        args.output_file != "-" or not sys.stdout.isatty()
    )
    identity = None
    inputs = (each for each in (text, prefixes) if each is not None)
    if all(each.fingerprint for each in inputs) and args.output_file != "-":
        identity = _identity(args, text, prefixes, prepared)
    record = scored_record if args.scores else text_record
    if args.nbest is not None:
        record = nbest_record
    with open_output(args.output_file, identity) as output:
        state = TranslationState(**output.state)
        if state.lines:
            cli.log(f"resuming after line {state.lines:,} of {text.lines:,}")
        with (
            _interruptible(output),
            progress_bar(text.lines, state.lines, show_progress) as progress,
        ):
            for records in translate_windows(
                translator,
                text.read(),
                state,
                batch_size=args.batch_size,
                # On a terminal each line is translated immediately.
                window=1 if interactive else args.window,
                record=record,
                progress=progress,
                prefixes=prefixes.read() if prefixes else None,
                align=prepared.align,
                first_line=text.first_line,
            ):
                output.append(records, asdict(state))
        if finish is not None and output.partial is not None:
            finish(output.partial)
    if state.divided:
        limit = prepared.lines.limit
        cli.log(f"divided, because longer than {limit}: {state.summary('divided')}")
    if state.several:
        cli.log(
            f"several sentences were translated as one: {state.summary('several')}; "
            "--split_sentences translates each, so that none is omitted"
        )
    if state.cut:
        cli.log(f"cut to {translator.limit}: {state.summary('cut')}")
    if prepared.summary is not None:
        cli.log(prepared.summary())


def check_names(args: Any) -> None:
    """Rejects an output file that would overwrite an input file."""
    output = args.output_file
    if not os.path.isfile(output):
        return
    for role, name in (("input", args.input_file), ("prefix", args.prefix_file)):
        # The file may be missing, and standard input may have no file descriptor.
        with suppress(OSError):
            file = sys.stdin.fileno() if name == "-" else name
            if file is not None and os.path.samefile(output, file):
                raise UserError(
                    f"--output_file {output} is the {role} file; name another file"
                )


def _prefixes(
    args: Any, text: InputText, part: tuple[int, int] | None
) -> InputText | None:
    """Opens --prefix_file, if given, and checks its number of lines."""
    from t2t_repro.translation.translation_files import InputText

    if args.prefix_file is None:
        return None
    if args.prefix_file == args.input_file == "-":
        raise UserError(
            "--prefix_file and --input_file are both standard input; name a file for "
            "one of them"
        )
    prefixes = InputText(args.prefix_file, part, args.window)
    lines = prefixes.lines
    if lines is not None and text.lines is not None and lines != text.lines:
        raise UserError(
            f"--prefix_file {args.prefix_file} has {format_count(lines, 'line')}, "
            f"--input_file {args.input_file} has {text.lines:,}; give one prefix "
            "(possibly empty) per line"
        )
    return prefixes


def _identity(
    args: Any, text: InputText, prefixes: InputText | None, prepared: Prepared
) -> dict[str, Any]:
    """Returns all settings and inputs that determine the output."""
    identity: dict[str, Any] = {
        "input": f"{text.lines} lines ({text.fingerprint})",
        "--prefix_file": prefixes and prefixes.fingerprint,
        "model": prepared.translator.fingerprint(),
    }
    flags = ["batch_size", "window", "scores", "nbest", "alignment", "alignment_layer"]
    flags += ["unknown", "shard_index", "num_shards"]
    identity |= {f"--{name}": getattr(args, name) for name in flags}
    identity["--xla"] = prepared.compiled
    search = asdict(prepared.lines.search)
    search["never"] = list(search["never"])  # JSON turns tuples into lists.
    precision, calibration_file = prepared.precision
    if precision == "int8":
        if prepared.weight_bits != 8:
            precision = f"int8 with {prepared.weight_bits}-bit weights"
        identity |= {"--precision": precision, "--calibration_file": calibration_file}
    # The flag --nbest overrides the search's nbest because it also sets the format.
    return {f"--{name}": value for name, value in search.items()} | identity


@contextmanager
def _interruptible(output: Output) -> Iterator[None]:
    """On Ctrl-C, prints how to resume."""
    try:
        yield
    except KeyboardInterrupt:
        if output.partial is not None:
            lines = output.state.get("lines", 0)
            cli.log(
                f"{lines:,} lines are in {output.partial}; run the same command to "
                "resume"
            )
        raise
