"""Tests of the common code of commands: flags, errors, exit statuses, results."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from t2t_repro.command_line import cli, model_flags
from t2t_repro.system.errors import UserError

ROOT = Path(__file__).resolve().parents[1]


def parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser("Does nothing.")
    parser.add_argument("--model_dir", required=True, help="model directory")
    parser.add_argument("--beam_size", type=int, default=4, help="hypotheses")
    return parser


def status_of(error: BaseException, capsys: pytest.CaptureFixture[str]) -> tuple:
    """Runs a command that raises `error`; returns its status and error output."""

    def main(argv: Sequence[str] | None) -> None:
        raise error

    with pytest.raises(SystemExit) as stopped:
        cli.run(main, [])
    return stopped.value.code, capsys.readouterr().err


def run_python(code: str, **kwargs: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("T2T_REPRO_VERBOSE", None)
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment | kwargs.pop("env", {}),  # type: ignore[operator]
        check=False,
    )


def test_suggests_a_similar_flag_before_reporting_missing_flags(capsys):
    with pytest.raises(SystemExit) as stopped:
        parser().parse_args(["--modeldir", "m"])
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "unknown flag --modeldir; did you mean '--model_dir'?" in error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "required: --model_dir"),
        (["--model_dir", "m", "--beam_size", "four"], "invalid int value: 'four'"),
        (["--model_dir", "m", "--beam", "4"], "did you mean '--beam_size'?"),
        (["--model_dir", "m", "stray"], "unrecognized arguments: stray"),
    ],
)
def test_bad_arguments_are_one_line_errors(arguments, words, capsys):
    with pytest.raises(SystemExit) as stopped:
        parser().parse_args(arguments)
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("flag", "good", "bad"),
    [
        ("--beam_size", {"1": 1, "12": 12}, ("0", "-1", "1.0", "x", "", "2147483648")),
        ("--batch_size", {"1": 1}, ("0", "1e3")),
        ("--alpha", {"0": 0.0, "0.6": 0.6}, ("-0.1", "nan", "inf", "x", "10.1")),
    ],
)
def test_rejects_numbers_out_of_range(flag, good, bad, capsys):
    parser = decoding_parser()
    for text, value in good.items():
        args = parser.parse_args(["--model_dir=m", flag, text])
        assert vars(args)[flag[2:]] == value
    for text in bad:
        with pytest.raises(SystemExit) as stopped:
            parser.parse_args(["--model_dir=m", f"{flag}={text}"])
        assert stopped.value.code == 2
        error = capsys.readouterr().err
        assert error.startswith(f"error: argument {flag}: must be a ")
        assert error.count("\n") == 1


def decoding_parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser("Translates nothing.")
    model_flags.add_decoding_flags(parser)
    return parser


def test_good_arguments_are_parsed():
    args = parser().parse_args(["--model_dir=m", "--beam_size", "2", "--json"])
    assert (args.model_dir, args.beam_size, args.json) == ("m", 2, True)


def test_paths_are_local_and_may_begin_with_the_home_directory(monkeypatch, capsys):
    monkeypatch.setenv("HOME", "/home/me")
    parser = cli.ArgumentParser("")
    for name in ("--model_dir", "--log"):
        parser.add_argument(name, type=cli.path)
    parser.add_argument("--reference_file", type=cli.path, nargs="+")
    parser.add_argument("--text")
    flags = ["--model_dir=~/m", "--reference_file", "a~", "~/b", "--text=~/http://c"]
    args = parser.parse_args(flags)
    assert (args.model_dir, args.log) == ("/home/me/m", None)
    assert (args.reference_file, args.text) == (["a~", "/home/me/b"], "~/http://c")
    for bad, words in (
        ("", "must not be empty"),
        ("gs://bucket/m", "gs://bucket/m: a URL is not supported; copy"),
        ("s3://b", "s3://b: a URL is not"),
        ("file:///m", "file:///m: a URL is not"),
        ("hdfs://n:9000/m", "hdfs://n:9000/m: a URL is not"),
    ):
        for flag in ("--model_dir", "--reference_file"):
            with pytest.raises(SystemExit) as stopped:
                parser.parse_args([flag, bad])
            assert stopped.value.code == 2
            error = capsys.readouterr().err
            assert error.startswith(f"error: argument {flag}: {words}")
            assert error.count("\n") == 1


def test_help_shows_only_informative_defaults(capsys):
    with pytest.raises(SystemExit) as stopped:
        parser().parse_args(["--help"])
    assert stopped.value.code == 0
    text = capsys.readouterr().out
    assert "hypotheses (default: 4)" in text
    assert "default: None" not in text
    assert "default: False" not in text


def test_a_users_mistake_is_one_line_and_status_2(capsys):
    assert status_of(UserError("x.en does not exist"), capsys) == (
        2,
        "error: x.en does not exist\n",
    )


def test_control_characters_of_a_message_are_escaped(capsys):
    error = UserError("a\n\r\x1b[2J\x85\u2028é is damaged")
    expected = "error: a\\n\\r\\x1b[2J\\x85\\u2028é is damaged\n"
    assert status_of(error, capsys) == (2, expected)


def test_ctrl_c_is_one_line_and_status_130(capsys):
    assert status_of(KeyboardInterrupt(), capsys) == (130, "interrupted\n")


def test_ctrl_c_in_a_library_is_one_line_and_status_130(capsys):
    by_text = RuntimeError("KeyboardInterrupt: \n\nAt:\n  a.py(3): b\n")
    by_cause = ValueError("no value")
    by_cause.__cause__ = SystemError("error return without exception set")
    by_cause.__cause__.__context__ = KeyboardInterrupt()
    for error in (by_text, by_cause):
        assert status_of(error, capsys) == (130, "interrupted\n")


def test_a_full_disk_names_the_file(capsys):
    full = OSError(errno.ENOSPC, "No space left on device", "m/ckpt")
    status, error = status_of(full, capsys)
    assert status == 2
    assert error.startswith("error: no space left on device: m/ckpt")
    assert error.count("\n") == 1


def test_a_full_disk_under_tensorflow_names_the_file(capsys):
    class ResourceExhaustedError(Exception):
        __module__ = "tensorflow.python.framework.errors_impl"

    full = ResourceExhaustedError("{{node Save}} /m/ckpt; No space left on device")
    status, error = status_of(full, capsys)
    assert status == 2
    assert error.startswith("error: no space left on device: /m/ckpt;")


def test_an_inaccessible_file_is_one_line(capsys):
    refused = PermissionError(errno.EACCES, "Permission denied", "/m")
    assert status_of(refused, capsys) == (2, "error: /m: Permission denied.\n")


def test_a_bug_keeps_its_traceback():
    def main(argv: Sequence[str] | None) -> None:
        raise ValueError("a fault")

    with pytest.raises(ValueError, match="a fault"):
        cli.run(main, [])


def test_verbose_shows_the_traceback_of_a_users_mistake():
    def main(argv: Sequence[str] | None) -> None:
        raise UserError("a mistake")

    with pytest.raises(UserError):
        cli.run(main, ["--verbose"])


def test_a_result_is_text_or_one_json_object(capsys):
    cli.print_result("Ergebnis: fünf", {"wert": "fünf"}, as_json=False)
    assert capsys.readouterr().out == "Ergebnis: fünf\n"
    cli.print_result("Ergebnis: fünf", {"wert": "fünf"}, as_json=True)
    assert json.loads(capsys.readouterr().out) == {"wert": "fünf"}


def test_output_is_utf8_in_any_locale():
    code = (
        "from t2t_repro.command_line import cli; cli.run(lambda argv: print('zwölf €'))"
    )
    result = run_python(code, env={"PYTHONIOENCODING": "latin-1"})
    assert (result.returncode, result.stdout) == (0, "zwölf €\n")


def test_file_names_may_be_invalid_utf8():
    code = (
        "import os; from t2t_repro.command_line import cli\n"
        "from t2t_repro.system.errors import UserError\n"
        "name = os.fsdecode(b'z\\xff')\n"
        "def main(argv):\n"
        "    print(name); raise UserError(name + ' does not exist')\n"
        "cli.run(main)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert (result.returncode, result.stdout) == (2, b"z\xff\n")
    assert result.stderr == b"error: z\\udcff does not exist\n"


@pytest.mark.parametrize(
    ("closed", "out", "err", "status"),
    [
        ("<&-", "''\n", "", 0),
        (">&-", "", "error: standard output is closed; send it to /dev/null", 2),
        ("2>&-", "''\n", "", 0),
    ],
)
def test_streams_may_be_closed(closed, out, err, status):
    code = (
        "import sys; from t2t_repro.command_line import cli\n"
        "cli.run(lambda argv: print(repr(sys.stdin.read())))"
    )
    result = subprocess.run(
        ["bash", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, code],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert (result.returncode, result.stdout) == (status, out)
    assert result.stderr.startswith(err)
    assert result.stderr.count("\n") == bool(err)


def test_a_closed_pipe_ends_the_command_silently():
    code = (
        "import os; from t2t_repro.command_line import cli\n"
        "def main(argv):\n"
        "    read, write = os.pipe(); os.close(read); os.dup2(write, 1)\n"
        "    print('text')\n"
        "cli.run(main)"
    )
    result = run_python(code)
    assert (result.returncode, result.stderr) == (141, "")


def test_cli_does_not_import_tensorflow():
    code = "import sys, t2t_repro.command_line.cli; print('tensorflow' in sys.modules)"
    assert run_python(code).stdout == "False\n"
