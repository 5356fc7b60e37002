"""TensorFlow Serving's REST interface, with row and column format."""

from __future__ import annotations

import base64
import json
import re
import sys
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import tensorflow as tf

from t2t_repro.serving.server.service import Arrays, Service, Signature
from t2t_repro.serving.server.status import HTTP, StatusError, invalid
from t2t_repro.system.errors import UserError

# Name and version of a model, and the kind of the request.
_PATH = re.compile(r"/v1/models/([^/:]+)(?:/versions/(\d+))?(:predict|/metadata|)")


class _Server(ThreadingHTTPServer):
    """Server with a thread for each connection."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Prints an error, unless the client has closed the connection."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Handler of HTTP requests."""

    protocol_version = "HTTP/1.1"
    service: Service

    def do_GET(self) -> None:
        """Answers a request for the status or the metadata of the model."""
        self._answer({"": self.service.status, "/metadata": self.service.metadata})

    def do_POST(self) -> None:
        """Answers a predict request."""
        length = self.headers.get("Content-Length", "")
        body = self.rfile.read(int(length)) if length.isdecimal() else b""
        self._answer({":predict": lambda: answer(self.service, body)})

    def _answer(self, kinds: Mapping[str, Callable[[], dict[str, Any]]]) -> None:
        """Sends the answer of the kind of request that the path names."""
        try:
            match = _PATH.fullmatch(self.path)
            if match is None or match[3] not in kinds:
                raise invalid(f"Malformed request: {self.command} {self.path}")
            self.service.check_model(match[1], int(match[2]) if match[2] else None)
            self._send(200, kinds[match[3]]())
        except StatusError as error:
            self._send(HTTP[error.code], {"error": error.message})

    def log_message(self, *_: Any) -> None:
        """Disables the access log."""

    def _send(self, status: int, values: dict[str, Any]) -> None:
        """Sends a JSON response."""
        body = json.dumps(values, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def answer(service: Service, body: bytes) -> dict[str, Any]:
    """Answers a request in JSON.

    Args:
        service: Served model.
        body: JSON object with ``inputs`` (column format) or ``instances`` (row format).

    Returns:
        Dictionary with ``outputs`` or ``predictions``. A single output is not named.

    Raises:
        StatusError: The request is rejected or fails.
    """
    try:
        request = json.loads(body)
    except ValueError as error:
        raise invalid(f"JSON Parse error: {error}") from None
    if not isinstance(request, dict):
        raise invalid("JSON Value: is not object")
    name = request.get("signature_name", "")
    signature = service.signature(name)
    if ("inputs" in request) == ("instances" in request):
        raise invalid("Missing 'inputs' or 'instances' key")
    by_columns = "inputs" in request
    read = _columns if by_columns else _rows
    outputs = service.predict(
        name, read(request["inputs" if by_columns else "instances"], signature)
    )
    lists = {key: _convert_to_json(value) for key, value in outputs.items()}
    if by_columns:
        return {"outputs": lists if len(lists) > 1 else next(iter(lists.values()))}
    rows = [
        dict(zip(lists, row, strict=True)) if len(lists) > 1 else row[0]
        for row in zip(*lists.values(), strict=True)
    ]
    return {"predictions": rows}


def start(
    service: Service, port: int, host: str = "127.0.0.1"
) -> tuple[ThreadingHTTPServer, int]:
    """Starts a server in a thread; returns the server and its port.

    The caller must shut the server down.

    Args:
        service: Served model.
        port: Port; 0 selects a free port.
        host: Address that the server listens on.

    Raises:
        UserError: The server cannot listen on this address and port.
    """
    handler = type("Handler", (_Handler,), {"service": service})
    try:
        server = _Server((host, port), handler)
    except OSError as error:
        raise UserError(
            f"cannot listen on {host}, port {port}: {error.strerror}; give another "
            "--host or --port"
        ) from None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, server.server_address[1]


def _columns(values: Any, signature: Signature) -> Arrays:
    """Reads ``inputs``: tensors by name, or a single tensor without a name."""
    if not isinstance(values, dict) or _is_bytes(values):
        if len(signature.inputs) > 1:
            raise invalid("'inputs' must be an object with several named tensors")
        values = {next(iter(signature.inputs)): values}
    missing = signature.inputs.keys() - values.keys()
    if missing:
        raise invalid(f"Missing named input: {missing} in 'inputs' object.")
    return {
        name: _tensor(values[name], info) for name, info in signature.inputs.items()
    }


def _rows(instances: Any, signature: Signature) -> Arrays:
    """Reads ``instances``: each row has values by name, or one value without a name."""
    if not isinstance(instances, list) or not instances:
        raise invalid("No values in 'instances' array")
    named = isinstance(instances[0], dict) and not _is_bytes(instances[0])
    if not named and len(signature.inputs) > 1:
        raise invalid("'instances' must be objects with several named values")
    columns: dict[str, list[Any]] = {name: [] for name in signature.inputs}
    for row in instances:
        values = row if named else {next(iter(columns)): row}
        if not isinstance(values, dict) or values.keys() != columns.keys():
            raise invalid(f"'instances' must have the keys {', '.join(columns)}")
        for name, value in values.items():
            columns[name].append(value)
    return {
        name: _tensor(values, signature.inputs[name])
        for name, values in columns.items()
    }


def _tensor(values: Any, info: Any) -> np.ndarray:
    """Reads a tensor from nested lists, which must have equal lengths at each level."""
    dtype = tf.as_dtype(info.dtype)
    # Lists of unequal lengths or levels remain lists in the array.
    nested = np.array(values, object)
    elements = [_element(value, dtype) for value in nested.ravel()]
    array = np.empty(nested.size, dtype.as_numpy_dtype)
    array[:] = elements
    return array.reshape(nested.shape)


def _element(value: Any, dtype: tf.DType) -> int | bytes:
    """Reads an integer or a string, which may be an object with base64 bytes."""
    if isinstance(value, list):
        raise invalid("Encountered list at unexpected size or level")
    if dtype == tf.int32:
        fits = isinstance(value, int) and -(2**31) <= value < 2**31
        if not fits or isinstance(value, bool):
            raise invalid(f"JSON Value: {value} Type: is not of expected type: int32")
        return value
    if isinstance(value, str):
        # JSON can contain an unpaired surrogate, which UTF-8 cannot encode.
        return value.encode("utf-8", "surrogatepass")
    if _is_bytes(value):
        try:
            return base64.b64decode(value["b64"], validate=True)
        except ValueError:
            raise invalid("Unable to base64 decode") from None
    raise invalid(f"JSON Value: {value} is not of expected type: string")


def _is_bytes(value: Any) -> bool:
    """Returns whether a value is a JSON object with base64-encoded bytes."""
    return (
        isinstance(value, dict)
        and value.keys() == {"b64"}
        and isinstance(value["b64"], str)
    )


def _convert_to_json(array: np.ndarray) -> Any:
    """Converts an array to lists; its strings must be UTF-8."""
    if array.dtype == np.object_:
        decoded = [value.decode() for value in array.ravel()]
        return np.array(decoded, object).reshape(array.shape).tolist()
    if array.dtype == np.float32:
        # Nine significant digits identify each float32.
        shortened = [float(f"{value:.9g}") for value in array.ravel()]
        return np.array(shortened, object).reshape(array.shape).tolist()
    return array.tolist()
