"""Tests of the model flags and the precision flags."""

import pytest

from t2t_repro.command_line import cli, model_flags
from t2t_repro.fast import int8_matmul
from t2t_repro.system.errors import UserError


def parsed(*arguments):
    parser = cli.ArgumentParser("Translates nothing.")
    model_flags.add_decoding_flags(parser)
    return parser.parse_args(["--model_dir=m", *arguments])


@pytest.mark.parametrize(
    ("reason", "expected"),
    [(None, ("int8", "text")), ("no VNNI", ("float32", None))],
)
def test_int8_falls_back_to_float32_with_a_message(
    monkeypatch, capsys, reason, expected
):
    monkeypatch.setattr(int8_matmul, "unsupported_reason", lambda: reason)
    args = parsed("--precision=int8", "--calibration_file=text")
    before = dict(vars(args))
    assert model_flags.select_precision(args) == expected
    assert vars(args) == before
    lines = "--precision int8: no VNNI; using float32\n" if reason else ""
    assert capsys.readouterr().err == lines


def test_a_calibration_file_needs_int8():
    assert model_flags.select_precision(parsed()) == ("float32", None)
    with pytest.raises(UserError, match="--calibration_file needs --precision int8"):
        model_flags.select_precision(parsed("--calibration_file=text"))
