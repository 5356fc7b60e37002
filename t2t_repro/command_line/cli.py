"""Common steps of every command: parses flags, starts TensorFlow, prints the result.

Commands import the library after parsing the flags because the import is slow.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from t2t_repro.command_line.error_lines import error_line
from t2t_repro.hparams.settings import INT32_MAX, suggest_similar
from t2t_repro.system.errors import UserError
from t2t_repro.system.quiet_import import (
    VERBOSE,
    import_tensorflow_quietly,
    use_tensorflow_backend,
)

EXIT_USER_ERROR = UserError.exit_status
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as a shell reports it.
EXIT_BROKEN_PIPE = 141  # 128 + SIGPIPE.

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class ArgumentParser(argparse.ArgumentParser):
    """An argument parser that suggests similar flags and prints one-line errors.

    Abbreviations are rejected because a flag added later could change their meaning.
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
            help=f"show TensorFlow's messages and full tracebacks (or set {VERBOSE}=1)",
        )

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parses the flags and reports unknown flags before missing ones."""
        arguments = list(sys.argv[1:] if args is None else args)
        flags = self._option_string_actions
        for argument in arguments:
            name = argument.partition("=")[0]
            if argument == "--":
                break
            if name.startswith("--") and name not in flags:
                self.error(f"unknown flag {name}{suggest_similar(name, flags)}")
        return super().parse_known_args(arguments, namespace)

    def error(self, message: str) -> NoReturn:
        """Prints one line and exits with status 2."""
        self.exit(EXIT_USER_ERROR, f"error: {message} (see --help)\n")


class _HelpFormatter(argparse.ArgumentDefaultsHelpFormatter):
    """Appends the default to the help of each flag that has one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        has_default = action.default not in (None, False, "", ())
        return super()._get_help_string(action) if has_default else action.help


def add_fast_flag(parser: argparse.ArgumentParser) -> None:
    """Adds the flag that disables the optimized implementations."""
    parser.add_argument(
        "--no-fast",
        action="store_true",
        help="use only the reference implementations (or set T2T_REPRO_FAST=0)",
    )


def int_range(minimum: int, maximum: int = INT32_MAX) -> Callable[[str], int]:
    """Returns a flag type that accepts integers from `minimum` to `maximum`."""

    def whole_number(text: str) -> int:
        value = _number(text, int)
        if not value >= minimum:
            raise _invalid(f"a whole number of at least {minimum}", text)
        if value > maximum:
            raise _invalid(f"a whole number of at most {maximum:,}", text)
        return int(value)

    return whole_number


def float_range(minimum: float, maximum: float) -> Callable[[str], float]:
    """Returns a flag type that accepts numbers from `minimum` to `maximum`."""

    def number(text: str) -> float:
        value = _number(text)
        if not minimum <= value <= maximum:
            raise _invalid(f"a number from {minimum:g} to {maximum:g}", text)
        return value

    return number


def fraction(text: str) -> float:
    """Parses the value of a flag, a number above 0 and at most 1."""
    value = _number(text)
    if not 0 < value <= 1:
        raise _invalid("a number above 0 and at most 1", text)
    return value


def path(text: str) -> str:
    """Parses the value of a flag, a path on this machine, and expands its `~`.

    A shell does not expand it in `--flag=~/path`.
    """
    if not text:
        raise argparse.ArgumentTypeError("must not be empty")
    if _URL.match(text):
        raise argparse.ArgumentTypeError(
            f"{text}: a URL is not supported; copy the files to this machine, or mount "
            "them, and give their path"
        )
    return os.path.expanduser(text)


def _number(text: str, kind: type[int] | type[float] = float) -> float:
    """Parses a number; any other text gives NaN, which fails every range check."""
    try:
        return kind(text)
    except ValueError:
        return math.nan


def _invalid(expected: str, text: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"must be {expected}, not {text!r}")


def run(
    main: Callable[[Sequence[str] | None], None], argv: Sequence[str] | None = None
) -> NoReturn:
    """Runs a command's `main` and exits with a status and a short message.

    A `UserError`, a full disk or an inaccessible file prints one line to standard error
    and exits with status 2, or with `UserError.exit_status` of a subclass. Ctrl-C
    prints one line and exits with status 130. A closed pipe (`| head`) ends the command
    silently. Any other exception is a bug and keeps its traceback. The standard streams
    use UTF-8 in every locale.
    """
    _prepare_streams()
    try:
        if sys.stdout is None:
            raise UserError("standard output is closed; send it to /dev/null instead")
        main(argv)
        sys.stdout.flush()
    except KeyboardInterrupt:
        _fail("interrupted", EXIT_INTERRUPTED)
    except BrokenPipeError:
        # Otherwise the flush at exit would fail again and print a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_BROKEN_PIPE)
    except Exception as error:
        line = error_line(error)
        if line is None and _is_interrupt(error):
            _fail("interrupted", EXIT_INTERRUPTED)
        flags = sys.argv if argv is None else argv
        if line is None or os.environ.get(VERBOSE) or "--verbose" in flags:
            raise
        status = EXIT_USER_ERROR
        if isinstance(error, UserError):
            status = error.exit_status
        _fail(f"error: {line}", status)
    sys.exit(0)


def _is_interrupt(error: BaseException | None) -> bool:
    """Returns whether Ctrl-C caused an error.

    Libraries in C++ convert a KeyboardInterrupt of the Python code that they call to
    another exception, such as RuntimeError (pybind11), with its name in the text.
    """
    while error is not None:
        if isinstance(error, KeyboardInterrupt) or "KeyboardInterrupt" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def start_tensorflow(verbose: bool = False) -> None:
    """Imports TensorFlow and, unless `verbose`, suppresses its log output.

    Raises UserError if Keras has been imported with another backend.
    """
    use_tensorflow_backend()
    if not verbose:
        import_tensorflow_quietly()


def start_models(
    verbose: bool = False, no_fast: bool = False, device: str | None = None
) -> None:
    """Starts TensorFlow and installs the optimized implementations; see `fast.install`.

    Args:
        verbose: Whether TensorFlow's log output is shown.
        no_fast: Whether every function uses its reference implementation.
        device: "CPU" or "GPU"; None for a GPU if the machine has one.
    """
    start_tensorflow(verbose)
    from t2t_repro import fast

    fast.install(device, without=fast.NAMES if no_fast else ())


def print_result(text: str, values: Mapping[str, Any], as_json: bool) -> None:
    """Prints a result: `text`, or `values` as one JSON object with `as_json`."""
    print(json.dumps(values, ensure_ascii=False) if as_json else text, flush=True)


def log(line: str) -> None:
    """Prints a line to standard error."""
    print(line, file=sys.stderr, flush=True)


def _program() -> str | None:
    """Returns the command line of the program, such as `python -m t2t_repro.train`."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    name = spec.name.removesuffix(".__main__") if spec else ""
    is_own = f"{name}.".startswith("t2t_repro.")
    return f"python -m {name}" if is_own else None


def _fail(line: str, status: int) -> NoReturn:
    log(line)
    sys.exit(status)


def _prepare_streams() -> None:
    """Sets the standard streams to UTF-8, and opens missing ones on the null device."""
    # File names may be invalid UTF-8: results preserve such bytes, errors escape them.
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream, errors in (
        (sys.stdin, "strict"),
        (sys.stdout, "surrogateescape"),
        (sys.stderr, "backslashreplace"),
    ):
        if hasattr(stream, "reconfigure"):  # Streams of tests may lack it.
            stream.reconfigure(encoding="utf-8", errors=errors)
