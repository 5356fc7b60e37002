"""Tests of the command `serve`, with requests over HTTP."""

import json
import re
import signal
import urllib.error
import urllib.request

import pytest

from tests import run_command, tiny

pytestmark = pytest.mark.medium

LINES = [source for source, _ in tiny.pairs("test")]


@pytest.fixture(scope="module")
def server(exported):
    """Process of the command, and the URL of its model."""
    flags = ("--export_dir", str(exported[0]), "--port", "0")
    process = run_command.start("serve", *flags)
    line = process.stdout.readline()
    yield process, re.search("http://[^;]+", line)[0]
    process.kill()
    process.communicate()


def send(url, body=None):
    """Returns the status and the JSON of the answer to a request."""
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(url, data, timeout=300) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_predictions_are_those_of_translate(trained, server):
    _, url = server
    text = "".join(f"{line}\n" for line in LINES).encode()
    flags = ("--model_dir", str(trained.model_dir))
    expected = run_command.run("translate", *flags, stdin=text).out.splitlines()
    status, columns = send(f"{url}:predict", {"inputs": {"text": LINES}})
    assert (status, columns["outputs"]["translations"]) == (200, expected)
    rows = [{"text": line} for line in LINES]
    status, answer = send(f"{url}/versions/1:predict", {"instances": rows})
    assert [row["translations"] for row in answer["predictions"]] == expected


def test_status_and_metadata_have_the_form_of_tensorflow_serving(server):
    _, url = server
    assert url.startswith("http://127.0.0.1:")
    status = {"error_code": "OK", "error_message": ""}
    available = {"version": "1", "state": "AVAILABLE", "status": status}
    assert send(url) == (200, {"model_version_status": [available]})
    code, metadata = send(f"{url}/metadata")
    signatures = metadata["metadata"]["signature_def"]["signature_def"]
    assert (code, metadata["model_spec"]["version"]) == (200, "1")
    assert signatures["serving_default"]["inputs"]["text"]["dtype"] == "DT_STRING"


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/versions/9", None, 404, "Servable not found for request: Specific("),
        ("x:predict", {}, 404, "Servable not found for request: Latest("),
        ("/labels", None, 400, "Malformed request: GET /v1/models/"),
        (":predict", {"inputs": ["a"] * 65}, 400, "larger than maximum input batch"),
        (":predict", {"inputs": 1}, 400, "is not of expected type: string"),
        (":predict", {"inputs": {"b64": "?"}}, 400, "Unable to base64 decode"),
        (":predict", {"signature_name": "no"}, 412, 'signature key "no" not found'),
    ],
)
def test_errors_have_the_form_of_tensorflow_serving(server, path, body, status, words):
    _, url = server
    code, answer = send(url + path, body)
    assert code == status
    assert words in answer["error"]


def test_a_port_in_use_is_reported_in_one_line(exported, server):
    port = re.search(r":(\d+)/", server[1])[1]
    flags = ("--export_dir", str(exported[0]), "--port", port)
    done = run_command.run_alone("serve", *flags)
    assert run_command.is_one_clear_line(done)
    assert (
        f"cannot listen on 127.0.0.1, port {port}: Address already in use" in done.err
    )


def test_ctrl_c_ends_the_server_with_one_line(server):
    process, _ = server
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (130, "interrupted\n")
