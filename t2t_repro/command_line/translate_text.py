"""What `translate` and `parse` have in common: from an input to an output."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from t2t_repro.command_line import cli, model_flags
from t2t_repro.system.errors import UserError

if TYPE_CHECKING:
    from t2t_repro.translation.parser import Parser
    from t2t_repro.translation.terms import TermTranslator
    from t2t_repro.translation.translation_files import Align, InputText, Output, Record
    from t2t_repro.translation.translator import Translator

    AnyTranslator = Translator | Parser | TermTranslator


class Prepared(NamedTuple):
    """A translator of lines, and how the flags chose it.

    Attributes:
        translator: the translator.
        precision: the precision of its weights.
        align: aligns the words of each translation; None without --alignment.
        compiled: whether XLA compiles the search.
    """

    translator: AnyTranslator
    precision: model_flags.Precision
    align: Align | None = None
    compiled: bool = False


def add_text_flags(parser: cli.ArgumentParser) -> None:
    """Adds the model, how it decodes, and what text goes in and out."""
    model_flags.add_decoding_flags(parser)
    parser.add_argument("--input_file", default="-", help="text; - is standard input")
    parser.add_argument(
        "--output_file",
        type=cli.not_empty,
        default="-",
        help="where it goes; - is standard output",
    )
    parser.add_argument(
        "--window",
        type=cli.at_least(1),
        default=4096,
        help="lines read, sorted by length and written together; 1 on a terminal",
    )


def translate_text(
    args: Any, load: Callable[[Any, int | None], Prepared]
) -> AnyTranslator:
    """Translates from the input to the output, wherever an earlier run left it.

    `load` takes the flags and the number of lines, where that is known. Returns the
    translator. Raises UserError if the flags, the text or the model cannot be used.
    """
    from t2t_repro.command_line.progress_bar import progress_bar
    from t2t_repro.translation.translation_files import (
        Done,
        InputText,
        open_output,
        translate_windows,
    )

    _check_names(args)
    text = InputText(args.input_file)
    prefixes = _prefixes(args, text)
    prepared = load(args, text.lines)
    translator = prepared.translator
    typed = args.input_file == "-" and sys.stdin.isatty()
    shown = not typed and (args.output_file != "-" or not sys.stdout.isatty())
    identity = None
    known = all(each.fingerprint for each in (text, prefixes) if each is not None)
    if known and args.output_file != "-":
        identity = _identity(args, text, prefixes, prepared)
    with open_output(args.output_file, identity) as output:
        done = Done(**output.state)
        if done.lines:
            _say(f"going on after line {done.lines:,} of {text.lines:,}")
        with (
            _interruptible(output),
            progress_bar(text.lines, done.lines, shown) as progress,
        ):
            for records in translate_windows(
                translator,
                text.read(),
                done,
                batch_size=args.batch_size,
                # Somebody who types waits for each line.
                window=1 if typed else args.window,
                record=_record(args),
                progress=progress,
                prefixes=prefixes.read() if prefixes else None,
                align=prepared.align,
            ):
                output.append(records, asdict(done))
    if done.cut:
        longest = translator.max_input_length
        _say(f"cut, because longer than {longest} subwords: {done.cut_lines()}")
    return translator


def _check_names(args: Any) -> None:
    """Refuses to replace a file that is read."""
    output = args.output_file
    if not os.path.isfile(output):
        return
    for what, name in (("input", args.input_file), ("prefix", args.prefix_file)):
        if _is_the_file(output, name):
            raise UserError(
                f"--output_file {output} is the {what} file; name another file"
            )


def _is_the_file(output: str, name: str | None) -> bool:
    """Whether a name, "-" for standard input, is another one of `output`."""
    if name == "-":
        with suppress(OSError):  # It is no file of the system's.
            return os.path.samestat(os.stat(output), os.fstat(sys.stdin.fileno()))
        return False
    return name is not None and os.path.exists(name) and os.path.samefile(output, name)


def _prefixes(args: Any, text: InputText) -> InputText | None:
    """Opens --prefix_file, if there is one; it needs as many lines as the input."""
    from t2t_repro.translation.translation_files import InputText

    if args.prefix_file is None:
        return None
    if args.prefix_file == args.input_file == "-":
        raise UserError("--prefix_file and --input_file are both standard input")
    prefixes = InputText(args.prefix_file)
    if None not in (prefixes.lines, text.lines) and prefixes.lines != text.lines:
        raise UserError(
            f"--prefix_file {args.prefix_file} has {prefixes.lines:,} lines, "
            f"--input_file {args.input_file} has {text.lines:,}; give a line, empty or "
            "not, for every line"
        )
    return prefixes


def _identity(
    args: Any,
    text: InputText,
    prefixes: InputText | None,
    prepared: Prepared,
) -> dict[str, Any]:
    """Names what decides the bytes of the output."""
    identity: dict[str, Any] = {
        "input": f"{text.lines} lines ({text.fingerprint})",
        "--prefix_file": prefixes and prefixes.fingerprint,
        "model": prepared.translator.fingerprint(),
    }
    flags = ("batch_size", "window", "scores", "nbest", "alignment", "alignment_layer")
    identity |= {f"--{name}": getattr(args, name) for name in flags}
    identity["--xla"] = prepared.compiled
    search = asdict(prepared.translator.search)
    search["never"] = list(search["never"])  # As JSON gives it back.
    precision, calibration_file = prepared.precision
    if precision == "int8":
        identity |= {"--precision": "int8", "--calibration_file": calibration_file}
    # --nbest decides the format, too.
    return {f"--{name}": value for name, value in search.items()} | identity


@contextmanager
def _interruptible(output: Output) -> Iterator[None]:
    """Says on Ctrl-C what has become of the work."""
    try:
        yield
    except KeyboardInterrupt:
        if output.partial is not None:
            lines = output.state.get("lines", 0)
            _say(f"{lines:,} lines are in {output.partial}; the same command goes on")
        raise


def _record(args: Any) -> Record:
    from t2t_repro.translation import translation_files

    if args.nbest is not None:
        return translation_files.nbest_record
    if args.scores:
        return translation_files.scored_record
    return translation_files.text_record


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
