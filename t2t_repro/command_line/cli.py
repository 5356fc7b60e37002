"""The frame of a command: parse flags, start, print the result or the error.

Commands import the library after the flags are parsed, because that is slow.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from t2t_repro.command_line.error_lines import error_line
from t2t_repro.hparams.settings import INT32_MAX, did_you_mean
from t2t_repro.system.errors import UserError
from t2t_repro.system.quiet_import import import_tensorflow_quietly

EXIT_USER_ERROR = 2
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as a shell reports it.
EXIT_BROKEN_PIPE = 141  # 128 + SIGPIPE.

_VERBOSE = "T2T_REPRO_VERBOSE"


class ArgumentParser(argparse.ArgumentParser):
    """An argument parser that names the nearest flag and fails in one line.

    No abbreviations are accepted: a later flag could change their meaning.
    """

    def __init__(self, description: str | None, json_flag: bool = True) -> None:
        super().__init__(
            prog=_program(),
            description=description,
            formatter_class=_HelpFormatter,
            allow_abbrev=False,
        )
        if json_flag:
            self.add_argument(
                "--json", action="store_true", help="print the result as a JSON object"
            )
        self.add_argument(
            "--verbose",
            action="store_true",
            help=f"show TensorFlow's messages and full tracebacks ({_VERBOSE}=1 too)",
        )

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parses the flags, refusing unknown ones before missing ones."""
        arguments = list(sys.argv[1:] if args is None else args)
        flags = self._option_string_actions
        for argument in arguments:
            name = argument.partition("=")[0]
            if argument == "--":
                break
            if name.startswith("--") and name not in flags:
                self.error(f"unknown flag {name}{did_you_mean(name, flags)}")
        return super().parse_known_args(arguments, namespace)

    def error(self, message: str) -> NoReturn:
        """Prints one line and exits with status 2."""
        self.exit(EXIT_USER_ERROR, f"error: {message} (--help lists the flags)\n")


class _HelpFormatter(argparse.HelpFormatter):
    """Appends the default to the help of each flag that has one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.default in (None, False, "", argparse.SUPPRESS) or not action.help:
            return action.help
        return f"{action.help} (default: %(default)s)"


def add_fast_flag(parser: argparse.ArgumentParser) -> None:
    """Adds the flag that switches the optimized implementations off."""
    parser.add_argument(
        "--no-fast",
        action="store_true",
        help="run the reference implementations only (T2T_REPRO_FAST=0 too)",
    )


def at_least(minimum: int, maximum: int = INT32_MAX) -> Callable[[str], int]:
    """Returns a flag's type: whole numbers from `minimum` up, to `maximum`."""

    def whole_number(text: str) -> int:
        value = _number(text, int)
        if not value >= minimum:
            raise _refused(f"a whole number of at least {minimum}", text)
        if value > maximum:
            raise _refused(f"a whole number of at most {maximum:,}", text)
        return int(value)

    return whole_number


def between(minimum: float, maximum: float) -> Callable[[str], float]:
    """Returns a flag's type: numbers from `minimum` to `maximum`."""

    def number(text: str) -> float:
        value = _number(text)
        if not minimum <= value <= maximum:
            raise _refused(f"a number from {minimum:g} to {maximum:g}", text)
        return value

    return number


def share(text: str) -> float:
    """Reads a flag's value: a number above 0 and at most 1."""
    value = _number(text)
    if not 0 < value <= 1:
        raise _refused("a number above 0 and at most 1", text)
    return value


def not_empty(text: str) -> str:
    """Reads a flag's value, which an empty variable of a shell would leave empty."""
    if not text:
        raise argparse.ArgumentTypeError("must not be empty")
    return text


def _number(text: str, kind: type[int] | type[float] = float) -> float:
    """Reads a number; any other text becomes NaN, which is in no range."""
    try:
        return kind(text)
    except ValueError:
        return math.nan


def _refused(accepted: str, text: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"must be {accepted}, not {text!r}")


def run(
    main: Callable[[Sequence[str] | None], None], argv: Sequence[str] | None = None
) -> NoReturn:
    """Runs a command's `main` and ends the process as a person expects.

    A `UserError`, a full disk or a file that the system refuses becomes one line on
    standard error and status 2; Ctrl-C one line and status 130; a reader that went away
    (`| head`) ends the command silently. Any other exception is a fault of the program
    and keeps its traceback. Text is UTF-8, whatever the locale says.
    """
    _prepare_streams()
    try:
        if sys.stdout is None:
            raise UserError("standard output is closed; send it to /dev/null instead")
        main(argv)
        sys.stdout.flush()
    except KeyboardInterrupt:
        _fail("interrupted.", EXIT_INTERRUPTED)
    except BrokenPipeError:
        # The flush at exit would fail once more and print a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_BROKEN_PIPE)
    except Exception as error:
        line = error_line(error)
        if line is None or _is_verbose(argv):
            raise
        _fail(f"error: {line}", EXIT_USER_ERROR)
    sys.exit(0)


def start_tensorflow(verbose: bool = False) -> None:
    """Imports TensorFlow; unless `verbose`, without the lines that it logs."""
    if not verbose and not os.environ.get(_VERBOSE):
        import_tensorflow_quietly()


def start_models(
    verbose: bool = False, no_fast: bool = False, device: str | None = None
) -> None:
    """Starts TensorFlow and installs the optimized implementations; see `fast.install`.

    With `no_fast` every function runs its reference implementation. `device` is "CPU"
    or "GPU"; None: a GPU if the machine has one.
    """
    start_tensorflow(verbose)
    from t2t_repro import fast

    fast.install(device, without=fast.NAMES if no_fast else ())


def print_result(text: str, values: Mapping[str, Any], as_json: bool) -> None:
    """Prints a result: text for people, or values for programs as one JSON object."""
    print(json.dumps(values, ensure_ascii=False) if as_json else text, flush=True)


def _program() -> str | None:
    """Names the command as a person runs it: `python -m t2t_repro.train`."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    name = spec.name if spec else ""
    return f"python -m {name}" if name.startswith("t2t_repro.") else None


def _is_verbose(argv: Sequence[str] | None) -> bool:
    arguments = sys.argv[1:] if argv is None else argv
    return bool(os.environ.get(_VERBOSE)) or "--verbose" in arguments


def _fail(line: str, status: int) -> NoReturn:
    print(line, file=sys.stderr, flush=True)
    sys.exit(status)


def _prepare_streams() -> None:
    """Makes the standard streams UTF-8; streams replaced by a test stay as they are."""
    # A file's name need not be UTF-8: results give it back, errors escape it.
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream, errors in (
        (sys.stdin, "strict"),
        (sys.stdout, "surrogateescape"),
        (sys.stderr, "backslashreplace"),
    ):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors=errors)
