"""Tests of the client with both protocols: results, retries and error messages."""

import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import tensorflow as tf
from serving_harness import grpc_front
from serving_harness.running import serve

from t2t_repro.serving.client import Client
from t2t_repro.serving.server import rest
from t2t_repro.serving.server.batching import BatchingParameters
from t2t_repro.serving.transport import Server, Transport, connect
from t2t_repro.system.errors import UserError
from tests.serving import small

pytestmark = pytest.mark.filterwarnings("ignore:text .*that were not read")

LINES = [*small.sentences(24, seed=3), "", "  ", "one € 日本 👩‍👩‍👧"]


@pytest.fixture(scope="module")
def running(export_dir):
    with serve(export_dir, small.NAME, BatchingParameters(64, 1000)) as server:
        yield server


@pytest.fixture(params=["grpc", "rest"])
def server(request, running):
    port = running.grpc_port if request.param == "grpc" else running.rest_port
    settings = {"timeout": 30.0, "retries": 0}
    return Server("127.0.0.1", port, small.NAME, request.param, **settings)


@pytest.fixture(scope="module")
def expected(module):
    outputs = module.functions["serving_default"](tf.constant(LINES))
    texts = [text.decode() for text in outputs["translations"].numpy()]
    return texts, outputs["scores"].numpy()


@pytest.mark.medium
@pytest.mark.parametrize("sizes", [(8, 4), (3, 8), (1, 1)])
def test_lines_are_translated_in_order(server, expected, sizes):
    with Client(server, *sizes) as client:
        texts, scores = zip(*client.translate(iter(LINES)), strict=True)
    assert list(texts) == expected[0]
    np.testing.assert_allclose(scores, expected[1], atol=1e-4)


@pytest.mark.medium
def test_warns_of_texts_that_the_server_did_not_read_completely(server):
    with (
        Client(server) as client,
        pytest.warns(UserWarning, match="text 2: subwords that were not read: "),
    ):
        list(client.translate(["one", "one two " * 20]))
        # A string is a single text.
        assert len([*client.translate("one two"), *client.nbest("one two")]) == 2


@pytest.mark.medium
def test_both_protocols_return_nbest_lists_and_scores(server, module, expected):
    pairs = list(zip(LINES, expected[0], strict=True))
    with Client(server, 8) as client:
        lists, scores = list(client.nbest(LINES)), list(client.score(pairs))
    assert [nbest[0].text for nbest in lists] == expected[0]
    assert max(len(nbest) for nbest in lists) == small.BEAM_SIZE
    assert all(nbest == sorted(nbest, key=lambda each: -each.score) for nbest in lists)
    log_probs = module.functions["score"](
        *(tf.constant(side) for side in zip(*pairs, strict=True))
    )["log_probability"]
    np.testing.assert_allclose(scores, log_probs, atol=1e-4)


@pytest.mark.medium
def test_both_protocols_return_attention_maps(server, module):
    inputs = {"text": ["one two"], "translation": [""]}
    outputs = module.functions["attention"](*map(tf.constant, inputs.values()))
    transport = connect(server)
    answer = transport.predict("attention", inputs, list(outputs))
    transport.close()
    for name, value in outputs.items():
        if value.dtype == tf.string:
            flat = [text.decode() for text in value.numpy().ravel()]
            assert np.array(answer[name]).ravel().tolist() == flat
        else:
            np.testing.assert_allclose(answer[name], value, atol=1e-6)


def test_no_lines_send_no_request():
    """A request would fail because no server listens on the port."""
    unreachable = Server("127.0.0.1", free_port(), small.NAME, "rest", retries=0)
    with Client(unreachable) as client:
        assert list(client.translate([])) == []


@pytest.mark.medium
def test_reads_only_a_few_batches_ahead(server):
    read = []

    def lines():
        for line in LINES:
            read.append(line)
            yield line

    with Client(server, batch_size=2, concurrency=2) as client:
        next(client.translate(lines()))
    assert len(read) == 6


@pytest.mark.medium
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "other"}, "rejected the request: Servable not found"),
        ({"version": 7}, r"rejected the request: Servable not found.*7"),
    ],
)
def test_unknown_models_and_versions_are_one_line_errors(server, change, message):
    other = Server(**{**vars(server), **change})
    with Client(other) as client, pytest.raises(UserError, match=message) as caught:
        list(client.translate(["one"]))
    assert "\n" not in str(caught.value)


@pytest.mark.medium
def test_sends_the_requested_version(server, expected):
    exact = Server(**{**vars(server), "version": 1})
    with Client(exact) as client:
        assert [each.text for each in client.translate(LINES)] == expected[0]


@pytest.mark.medium
def test_a_batch_above_the_servers_limit_is_a_one_line_error(server):
    with (
        Client(server, batch_size=65) as client,
        pytest.raises(UserError, match="Task size 65 is larger than maximum"),
    ):
        list(client.translate(["one"] * 65))


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


@pytest.mark.parametrize("protocol", ["grpc", "rest"])
def test_error_names_an_unreachable_server(protocol):
    unreachable = Server("127.0.0.1", free_port(), small.NAME, protocol, retries=1)
    with (
        Client(unreachable) as client,
        pytest.raises(UserError, match=rf"no response from {unreachable.host}:"),
    ):
        list(client.translate(["one"]))


@pytest.mark.medium
def test_waits_for_a_server_that_starts_later(running, expected):
    ports = {"grpc": free_port(), "rest": free_port()}
    texts = {}

    def translate(protocol):
        patient = Server("127.0.0.1", ports[protocol], small.NAME, protocol)
        with Client(patient) as client:
            texts[protocol] = [text for text, _ in client.translate(LINES)]

    threads = [threading.Thread(target=translate, args=[name]) for name in ports]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    grpc_server, _ = grpc_front.start(running.service, ports["grpc"])
    rest_server, _ = rest.start(running.service, ports["rest"])
    for thread in threads:
        thread.join()
    rest_server.shutdown()
    rest_server.server_close()
    grpc_server.stop(grace=None).wait()
    assert texts == dict.fromkeys(ports, expected[0])


class Flaky(Transport):
    """A transport that fails the given number of times and counts the requests."""

    def __init__(self, failures, retries):
        super().__init__(Server("h", 1, "m", retries=retries))
        self.failures, self.requests = failures, 0

    def _send(self, signature, inputs, outputs):
        from t2t_repro.serving.transport import UnavailableError

        self.requests += 1
        if self.requests <= self.failures:
            raise UnavailableError("busy")
        return {name: [0.0] * len(inputs["text"]) for name in outputs}


def test_delay_doubles_up_to_the_maximum(monkeypatch):
    waits = []
    transport = Flaky(failures=7, retries=7)
    monkeypatch.setattr("random.uniform", lambda low, high: high)
    monkeypatch.setattr(transport._closed, "wait", waits.append)
    transport.predict("s", {"text": ["a"]}, ["x"])
    assert waits == [0.25, 0.5, 1, 2, 4, 8, 8]


def test_reports_the_reason_after_the_last_retry(monkeypatch):
    transport = Flaky(failures=9, retries=2)
    monkeypatch.setattr(transport._closed, "wait", lambda seconds: False)
    with pytest.raises(UserError, match=r"no response from h:1 \(grpc\): busy"):
        transport.predict("s", {"text": ["a"]}, ["x"])
    assert transport.requests == 3


def test_closing_ends_the_retries():
    transport = Flaky(failures=9, retries=9)
    transport.close()
    with pytest.raises(UserError, match="busy"):
        transport.predict("s", {"text": ["a"]}, ["x"])
    assert transport.requests == 1


@pytest.fixture
def web_server():
    """Starts a web server whose response, if any, is configurable."""

    class Handler(BaseHTTPRequestHandler):
        answer = (200, b"hello")

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            status, body = self.answer
            if status is None:
                time.sleep(1)
                return
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield Handler, server.server_address[1]
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((200, b"hello"), "rejected the request: HTTP 200 without JSON"),
        ((404, b"<html>"), "rejected the request: HTTP 404 without JSON"),
        ((500, b'{"error": "out of\\nluck"}'), "rejected the request: out of luck"),
        ((200, b'{"outputs": {"x": [1]}}'), "lack translations, scores"),
        ((503, b"{}"), "no response from .*: HTTP 503"),
        ((None, b""), r"did not respond within 0\.2 s"),
    ],
)
def test_unexpected_responses_are_one_line_errors(web_server, answer, message):
    handler, port = web_server
    handler.answer = answer
    server = Server("127.0.0.1", port, "m", "rest", timeout=0.2, retries=0)
    with Client(server) as client, pytest.raises(UserError, match=message) as caught:
        list(client.translate(["one"]))
    assert "\n" not in str(caught.value)


def test_a_silent_grpc_server_times_out():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        server = Server("127.0.0.1", port, "m", timeout=0.3, retries=0)
        with (
            Client(server) as client,
            pytest.raises(UserError, match=r"did not respond|no response"),
        ):
            list(client.translate(["one"]))


def test_rejects_an_unknown_protocol():
    with pytest.raises(UserError, match="--protocol soap is unknown"):
        connect(Server("h", 1, "m", "soap"))
