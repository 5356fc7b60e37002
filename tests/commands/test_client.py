"""The command `client`: lines in, lines out."""

import contextlib

import pytest
from serving_harness.batching import BatchingParameters
from serving_harness.running import serving

from tests import run_command, tiny

pytestmark = pytest.mark.medium

LINES = [source for source, _ in tiny.pairs("test")] + ["", "ten"]
TEXT = "".join(f"{line}\n" for line in LINES).encode()


@pytest.fixture(scope="module")
def running(trained, tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    flags = ("--model_dir", str(trained.model_dir), "--export_dir", str(folder))
    done = run_command.run("export", *flags)
    assert done.status == 0, done.err
    with contextlib.ExitStack() as stack:
        parameters = BatchingParameters(64, 1000)
        yield stack.enter_context(serving(folder, "model", parameters))


def client(running, protocol, *arguments, stdin=TEXT):
    port = running.grpc_port if protocol == "grpc" else running.rest_port
    flags = ("--host", "127.0.0.1", "--port", str(port), "--protocol", protocol)
    return run_command.run("client", *flags, *arguments, stdin=stdin)


@pytest.mark.parametrize("protocol", ["grpc", "rest"])
def test_the_client_writes_what_translate_does(trained, running, protocol):
    flags = ("--model_dir", str(trained.model_dir))
    wanted = run_command.run("translate", *flags, stdin=TEXT)
    done = client(running, protocol, "--model", "model", "--batch_size", "3")
    assert (done.status, done.err) == (0, "")
    assert done.out == wanted.out
    scored = client(running, protocol, "--model", "model", "--scores")
    rows = [line.split("\t") for line in scored.out.splitlines()]
    assert [text for _, text in rows] == wanted.out.splitlines()
    assert rows[LINES.index("")] == ["0.000000", ""]


def test_no_line_gives_no_line(running):
    done = client(running, "rest", "--model", "model", stdin=b"")
    assert done == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        (["--model", "other"], TEXT, "Servable not found for request: Latest(other)"),
        (["--model", "model", "--version", "9"], TEXT, "Specific(model, 9)"),
        (["--model", "model"], b"one\n\xff\n", "standard input:2:1: byte 0xff"),
        (["--model", "model"], b"one\0\n", "a NUL character"),
        (["--model", "model", "--timeout", "0"], TEXT, "--timeout"),
        ([], TEXT, "--model"),
    ],
)
def test_mistakes_are_one_clear_line(running, arguments, stdin, message):
    done = client(running, "rest", *arguments, stdin=stdin)
    assert run_command.is_one_clear_line(done)
    assert message in done.err


def test_nobody_at_the_port_is_one_clear_line():
    done = run_command.run(
        "client",
        *("--host", "127.0.0.1", "--port", "1", "--model", "model"),
        *("--protocol", "rest", "--retries", "0"),
        stdin=TEXT,
    )
    assert run_command.is_one_clear_line(done)
    assert "no response from 127.0.0.1:1 (rest)" in done.err
