"""Tests of the command `client`."""

import pytest
from serving_harness.running import serve

from t2t_repro.serving.server.batching import BatchingParameters
from tests import run_command, tiny

pytestmark = pytest.mark.medium

LINES = [source for source, _ in tiny.pairs("test")] + ["", "ten"]
TEXT = "".join(f"{line}\n" for line in LINES).encode()
SENTENCES = f"{LINES[0]}. {LINES[1].capitalize()}.\t\n".encode()


@pytest.fixture(scope="module")
def running(exported):
    with serve(exported[0], "model", BatchingParameters(64, 1000)) as server:
        yield server


def client(running, protocol, *arguments, stdin=TEXT):
    port = running.grpc_port if protocol == "grpc" else running.rest_port
    flags = ("--host", "127.0.0.1", "--port", str(port), "--protocol", protocol)
    return run_command.run("client", *flags, *arguments, stdin=stdin)


@pytest.fixture(scope="module")
def translated(trained):
    """Returns the output of `translate` for `TEXT` and for the parts of `SENTENCES`."""
    flags = ("--model_dir", str(trained.model_dir))
    by_line = run_command.run("translate", *flags, stdin=TEXT)
    flags += ("--split_sentences",)
    return by_line.out, run_command.run("translate", *flags, stdin=SENTENCES).out


@pytest.mark.parametrize("protocol", ["grpc", "rest"])
def test_the_client_gives_the_output_of_translate(translated, running, protocol):
    by_line, by_sentence = translated
    result = client(running, protocol, "--model", "model", "--batch_size", "3")
    assert (result.status, result.err) == (0, "")
    assert result.out == by_line
    scored = client(running, protocol, "--model", "model", "--scores")
    rows = [line.split("\t") for line in scored.out.splitlines()]
    assert [text for _, text in rows] == by_line.splitlines()
    assert rows[LINES.index("")] == ["0.000000", ""]
    result = client(
        running, protocol, "--model", "model", "--split_sentences", stdin=SENTENCES
    )
    assert (result.out, result.err) == (by_sentence, "")


def test_an_empty_input_gives_an_empty_output(running):
    result = client(running, "rest", "--model", "model", stdin=b"")
    assert result == (0, "", "")


def test_a_line_that_the_server_cuts_is_reported_once(running):
    line = b" " * 65_536 + b"one two\n"
    result = client(running, "rest", "--model", "model", stdin=line)
    assert (result.status, result.out) == (0, "\n")
    assert result.err == "line 1: characters that were not read: 7\n"
