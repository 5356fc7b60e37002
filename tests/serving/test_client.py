"""Both protocols give what the model gives, in order, and say plainly what is wrong."""

import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import tensorflow as tf
from serving_harness.batching import BatchingParameters
from serving_harness.running import serving

from t2t_repro.serving.client import Client
from t2t_repro.serving.transport import Server, Transport, connect
from t2t_repro.system.errors import UserError
from tests.serving import small

pytestmark = pytest.mark.medium

LINES = [*small.sentences(40, seed=3), "", "  ", "one € 日本 👩‍👩‍👧"]


@pytest.fixture(scope="module")
def running(export_dir):
    with serving(export_dir, small.NAME, BatchingParameters(64, 1000)) as found:
        yield found


@pytest.fixture(params=["grpc", "rest"])
def server(request, running):
    port = running.grpc_port if request.param == "grpc" else running.rest_port
    settings = {"timeout": 30.0, "retries": 0}
    return Server("127.0.0.1", port, small.NAME, request.param, **settings)


@pytest.fixture(scope="module")
def wanted(module):
    found = module.functions["serving_default"](tf.constant(LINES))
    texts = [text.decode() for text in found["translations"].numpy()]
    return texts, found["scores"].numpy()


@pytest.mark.parametrize("sizes", [(32, 4), (3, 8), (1, 1)])
def test_lines_are_translated_in_order(server, wanted, sizes):
    with Client(server, *sizes) as client:
        texts, scores = zip(*client.translate(iter(LINES)), strict=True)
    assert list(texts) == wanted[0]
    np.testing.assert_allclose(scores, wanted[1], atol=1e-4)


@pytest.mark.medium
def test_lists_and_scores_come_over_both_protocols(server, module, wanted):
    pairs = list(zip(LINES, wanted[0], strict=True))
    with Client(server, 8) as client:
        lists, scores = list(client.nbest(LINES)), list(client.score(pairs))
    assert [found[0].text for found in lists] == wanted[0]
    assert max(len(found) for found in lists) == small.BEAM_SIZE
    assert all(found == sorted(found, key=lambda each: -each.score) for found in lists)
    log_probs = module.functions["score"](
        *(tf.constant(side) for side in zip(*pairs, strict=True))
    )["log_probability"]
    np.testing.assert_allclose(scores, log_probs, atol=1e-4)


@pytest.mark.medium
def test_attention_comes_whole(server, module):
    inputs = {"text": ["one two"], "translation": [""]}
    found = module.functions["attention"](*map(tf.constant, inputs.values()))
    transport = connect(server)
    answer = transport.predict("attention", inputs, list(found))
    transport.close()
    for name, value in found.items():
        if value.dtype == tf.string:
            flat = [text.decode() for text in value.numpy().ravel()]
            assert np.array(answer[name]).ravel().tolist() == flat
        else:
            np.testing.assert_allclose(answer[name], value, atol=1e-6)


def test_no_line_asks_for_nothing():
    """There is nobody at that port."""
    nobody = Server("127.0.0.1", free_port(), small.NAME, "rest", retries=0)
    with Client(nobody) as client:
        assert list(client.translate([])) == []


def test_a_stream_is_read_a_few_batches_ahead(server):
    read = []

    def lines():
        for line in LINES:
            read.append(line)
            yield line

    with Client(server, batch_size=2, concurrency=2) as client:
        next(client.translate(lines()))
    assert len(read) == 6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "other"}, "refuses the request: Servable not found"),
        ({"version": 7}, r"refuses the request: Servable not found.*7"),
    ],
)
def test_other_models_are_named_in_one_line(server, change, message):
    other = Server(**{**vars(server), **change})
    with Client(other) as client, pytest.raises(UserError, match=message) as caught:
        list(client.translate(["one"]))
    assert "\n" not in str(caught.value)


def test_the_version_can_be_named(server, wanted):
    exact = Server(**{**vars(server), "version": 1})
    with Client(exact) as client:
        assert [found.text for found in client.translate(LINES)] == wanted[0]


def test_a_batch_beyond_the_servers_limit_is_refused_in_one_line(server):
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
def test_a_server_that_is_not_there_is_named(protocol):
    nobody = Server("127.0.0.1", free_port(), small.NAME, protocol, retries=1)
    with (
        Client(nobody) as client,
        pytest.raises(UserError, match=rf"no server answers at {nobody.host}:"),
    ):
        list(client.translate(["one"]))


@pytest.mark.medium
@pytest.mark.parametrize("protocol", ["grpc", "rest"])
def test_a_server_that_comes_later_is_waited_for(export_dir, wanted, protocol):
    ports = {"grpc": free_port(), "rest": free_port()}
    found = []

    def translate():
        patient = Server("127.0.0.1", ports[protocol], small.NAME, protocol)
        with Client(patient) as client:
            found.extend(text for text, _ in client.translate(LINES))

    thread = threading.Thread(target=translate)
    thread.start()
    time.sleep(0.5)
    with serving(export_dir, small.NAME, None, ports["grpc"], ports["rest"]):
        thread.join()
    assert found == wanted[0]


class Flaky(Transport):
    """Fails as often as it is told to, and counts."""

    def __init__(self, failures, retries):
        super().__init__(Server("h", 1, "m", retries=retries))
        self.failures, self.asked = failures, 0

    def _ask(self, signature, inputs, outputs):
        from t2t_repro.serving.transport import UnavailableError

        self.asked += 1
        if self.asked <= self.failures:
            raise UnavailableError("busy")
        return {name: [0.0] * len(inputs["text"]) for name in outputs}


def test_waits_double_up_to_the_longest(monkeypatch):
    waits = []
    transport = Flaky(failures=7, retries=7)
    monkeypatch.setattr("random.uniform", lambda low, high: high)
    monkeypatch.setattr(transport._closed, "wait", waits.append)
    transport.predict("s", {"text": ["a"]}, ["x"])
    assert waits == [0.25, 0.5, 1, 2, 4, 8, 8]


def test_after_the_last_retry_the_reason_is_told(monkeypatch):
    transport = Flaky(failures=9, retries=2)
    monkeypatch.setattr(transport._closed, "wait", lambda seconds: False)
    with pytest.raises(UserError, match=r"no server answers at h:1 \(grpc\): busy"):
        transport.predict("s", {"text": ["a"]}, ["x"])
    assert transport.asked == 3


def test_closing_ends_the_waiting():
    transport = Flaky(failures=9, retries=9)
    transport.close()
    with pytest.raises(UserError, match="busy"):
        transport.predict("s", {"text": ["a"]}, ["x"])
    assert transport.asked == 1


@pytest.fixture
def strange():
    """A web server that is no model server: answers as it is told to, or never."""

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
        ((200, b"hello"), "refuses the request: HTTP 200 without JSON"),
        ((404, b"<html>"), "refuses the request: HTTP 404 without JSON"),
        ((500, b'{"error": "out of\\nluck"}'), "refuses the request: out of luck"),
        ((200, b'{"outputs": {"x": [1]}}'), "does not answer with translations, sc"),
        ((503, b"{}"), "no server answers at .*: HTTP 503"),
        ((None, b""), r"gave no answer within 0\.2 s"),
    ],
)
def test_strange_servers_are_answered_with_one_line(strange, answer, message):
    handler, port = strange
    handler.answer = answer
    server = Server("127.0.0.1", port, "m", "rest", timeout=0.2, retries=0)
    with Client(server) as client, pytest.raises(UserError, match=message) as caught:
        list(client.translate(["one"]))
    assert "\n" not in str(caught.value)


def test_a_grpc_server_that_never_answers_is_given_up():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        server = Server("127.0.0.1", port, "m", timeout=0.3, retries=0)
        with (
            Client(server) as client,
            pytest.raises(UserError, match=r"no (answer|server)"),
        ):
            list(client.translate(["one"]))


def test_there_are_two_protocols():
    with pytest.raises(UserError, match="--protocol soap: it is grpc or rest"):
        connect(Server("h", 1, "m", "soap"))
