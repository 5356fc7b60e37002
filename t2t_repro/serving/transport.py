"""Requests to TensorFlow Serving over gRPC or REST, with retries."""

from __future__ import annotations

import json
import random
import re
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

import numpy as np

from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.plain_tokenizer import PlainTokenizer, pad

PORTS = {"grpc": 8500, "rest": 8501}
"""Default port of TensorFlow Serving for each protocol."""

_FIRST_WAIT, _LONGEST_WAIT = 0.25, 8.0  # Seconds between retries.
_BUSY_STATUS = (429, 502, 503, 504)
# Remedies by the name of a missing input.
_HINTS = {
    "inputs": "; the model takes ids: give its folder assets.extra/tokenizer as "
    "--tokenizer",
    "text": "; the model takes text: remove --tokenizer",
}
# Names of the tensors of exports that take text and of those that take ids.
_OF_IDS = {"text": "inputs", "translation": "targets", "translations": "outputs"}

NOTES = "notes"
"""Output that describes the unread part of each text."""

Texts = Mapping[str, Sequence[Any]]
"""Inputs by name: strings, or rows of ids."""

Answer = dict[str, Any]
"""Outputs by name, as nested lists; strings are decoded."""


@dataclass(frozen=True)
class Server:
    """Address of a served model, and the limits of a request.

    Attributes:
        host: Host name or address.
        port: Port of the protocol.
        model: Name of the model on the server.
        protocol: "grpc" or "rest".
        version: Version of the model; None for the newest.
        timeout: Seconds to wait for a response.
        retries: Number of retries if the server is unreachable or busy. The wait
            doubles from 0.25 to 8 seconds.
    """

    host: str
    port: int
    model: str
    protocol: str = "grpc"
    version: int | None = None
    timeout: float = 60.0
    retries: int = 6

    def __str__(self) -> str:
        """Returns the address and protocol for error messages."""
        return f"{self.host}:{self.port} ({self.protocol})"


class UnavailableError(Exception):
    """The server is unreachable or busy; a retry may succeed."""


class Transport(ABC):
    """Thread-safe connection to a server with one protocol."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._closed = threading.Event()

    def predict(self, signature: str, inputs: Texts, outputs: Sequence[str]) -> Answer:
        """Sends a request, with retries while the server is not available.

        Args:
            signature: Name of the signature.
            inputs: Strings (batch,) by name.
            outputs: Names of all outputs of the signature.

        Raises:
            UserError: The server was not available in time, or rejected the request.
        """
        wait = _FIRST_WAIT
        for attempt in range(self.server.retries + 1):
            try:
                return self._check_outputs(
                    self._send(signature, inputs, outputs), outputs
                )
            except UnavailableError as error:
                reason = error
            # The random factor spreads the retries of many clients. close() ends the
            # wait.
            last = attempt == self.server.retries
            if last or self._closed.wait(wait * random.uniform(0.5, 1.0)):
                break
            wait = min(2 * wait, _LONGEST_WAIT)
        raise UserError(
            f"no response from {self.server}: {reason}; start the server, or correct "
            "--host, --port and --protocol"
        )

    def close(self) -> None:
        """Closes the connections and ends the retries of other threads."""
        self._closed.set()

    def _check_outputs(self, answer: Answer, outputs: Sequence[str]) -> Answer:
        """Returns the answer; raises UserError if an output is missing."""
        # Exports of earlier versions lack notes.
        if outputs and outputs[0] in answer:
            answer.setdefault(NOTES, [""] * len(answer[outputs[0]]))
        if missing := [name for name in outputs if name not in answer]:
            raise UserError(
                f"{self.server}: the outputs of the model {self.server.model} lack "
                f"{', '.join(missing)}; serve a model that t2t_repro.export wrote"
            )
        return answer

    def _rejection(self, reason: object) -> UserError:
        """Returns the error for a rejected request."""
        line = " ".join(str(reason).split())
        missing = re.search(r"(?i)missing (?:but required|named input)\W+(\w+)", line)
        hint = _HINTS.get(missing[1], "") if missing else ""
        return UserError(f"{self.server} rejected the request: {line}{hint}")

    def _timeout(self) -> UserError:
        """Returns the error for a request that took too long."""
        return UserError(
            f"{self.server} did not respond within {self.server.timeout:g} s; reduce "
            "--batch_size or increase --timeout"
        )

    @abstractmethod
    def _send(self, signature: str, inputs: Texts, outputs: Sequence[str]) -> Answer:
        """Sends one request.

        Raises:
            UnavailableError: The request may be sent again.
            UserError: The request was rejected, or got no response in time.
        """


class GrpcTransport(Transport):
    """Connection over gRPC, which imports TensorFlow for its messages."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        import grpc

        from t2t_repro.serving import messages

        # The default limit of 4 MB is too small for attention maps.
        options = [("grpc.max_receive_message_length", -1)]
        address = f"{server.host}:{server.port}"
        self._channel = grpc.insecure_channel(address, options)
        self._predict = self._channel.unary_unary(
            messages.PREDICT,
            request_serializer=messages.PredictRequest.SerializeToString,
            response_deserializer=messages.PredictResponse.FromString,
        )

    def close(self) -> None:
        """Closes the connection."""
        super().close()
        self._channel.close()

    def _send(self, signature: str, inputs: Texts, outputs: Sequence[str]) -> Answer:
        from grpc import RpcError, StatusCode

        from t2t_repro.serving.messages import predict_request

        request = predict_request(self.server.model, signature, inputs)
        if self.server.version is not None:
            request.model_spec.version.value = self.server.version
        try:
            response = self._predict(request, timeout=self.server.timeout)
        except RpcError as error:
            # The batching queue returns RESOURCE_EXHAUSTED after a long wait.
            if error.code() in (StatusCode.UNAVAILABLE, StatusCode.RESOURCE_EXHAUSTED):
                raise UnavailableError(error.details()) from None
            if error.code() == StatusCode.DEADLINE_EXCEEDED:
                raise self._timeout() from None
            raise self._rejection(error.details()) from None
        return {
            name: _convert_to_lists(tensor) for name, tensor in response.outputs.items()
        }


class RestTransport(Transport):
    """Connection over REST, which does not import TensorFlow."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        import urllib3

        sockets: WeakSet[socket.socket] = WeakSet()

        class Connection(urllib3.connection.HTTPConnection):
            """A connection that registers its socket, so that `close` can end it."""

            def connect(self) -> None:
                super().connect()
                if self.sock is not None:
                    sockets.add(self.sock)

        class Pool(urllib3.HTTPConnectionPool):
            ConnectionCls = Connection

        self._sockets = sockets
        self._pool = urllib3.PoolManager(
            maxsize=16, timeout=server.timeout, retries=False
        )
        self._pool.pool_classes_by_scheme = {"http": Pool}
        version = "" if server.version is None else f"/versions/{server.version}"
        address = f"http://{server.host}:{server.port}"
        self._url = f"{address}/v1/models/{server.model}{version}:predict"

    def close(self) -> None:
        """Closes the connections, including those with pending requests."""
        super().close()
        for each in list(self._sockets):
            with suppress(OSError):  # The socket is already disconnected.
                each.shutdown(socket.SHUT_RDWR)
        self._pool.clear()

    def _send(self, signature: str, inputs: Texts, outputs: Sequence[str]) -> Answer:
        from urllib3 import exceptions

        body = {"signature_name": signature, "inputs": inputs}
        try:
            response = self._pool.request("POST", self._url, json=body)
        except exceptions.ReadTimeoutError:
            raise self._timeout() from None
        except exceptions.LocationValueError as error:
            raise self._rejection(error) from None
        except exceptions.HTTPError as error:
            raise UnavailableError(_reason(error)) from None
        answer = None
        with suppress(ValueError):
            answer = json.loads(response.data)
        if not isinstance(answer, dict):
            answer = {"error": f"HTTP {response.status} without JSON"}
        if response.status in _BUSY_STATUS:
            raise UnavailableError(f"HTTP {response.status}: {answer.get('error')}")
        if response.status != 200 or "outputs" not in answer:
            raise self._rejection(answer.get("error", f"HTTP {response.status}"))
        values = answer["outputs"]
        # The server omits the name of the output if there is only one.
        return values if isinstance(values, dict) else {outputs[0]: values}


class TokenizingTransport(Transport):
    """Connection to an export that takes ids, for clients with texts.

    Args:
        transport: Connection to the server.
        tokenizer: Tokenizer of the model.
    """

    def __init__(self, transport: Transport, tokenizer: PlainTokenizer) -> None:
        super().__init__(transport.server)
        self._transport, self._tokenizer = transport, tokenizer

    def close(self) -> None:
        """Closes the connection."""
        super().close()
        self._transport.close()

    def _send(self, signature: str, inputs: Texts, outputs: Sequence[str]) -> Answer:
        encoders = {
            "text": self._tokenizer.encode,
            "translation": self._tokenizer.encode_target,
        }
        ids = {
            _OF_IDS[name]: pad([*map(encoders[name], texts)])
            for name, texts in inputs.items()
        }
        names = [_OF_IDS.get(name, name) for name in outputs]
        answer = self._transport._send(signature, ids, names)
        if "outputs" in answer:
            answer["translations"] = [*map(self._decode, answer.pop("outputs"))]
        if texts := inputs.get("text"):
            notes = answer.get(NOTES, [""] * len(texts))
            labels = map(self._tokenizer.note, texts)
            pairs = zip(notes, labels, strict=True)
            answer[NOTES] = ["; ".join(filter(None, pair)) for pair in pairs]
        return answer

    def _decode(self, ids: list[Any]) -> Any:
        """Decodes a row of ids, or the rows of an n-best list."""
        if ids and isinstance(ids[0], list):
            return [*map(self._tokenizer.decode, ids)]
        return self._tokenizer.decode(ids)


def connect(server: Server) -> Transport:
    """Returns the transport for a server's protocol, without sending a request.

    Raises:
        UserError: The protocol is unknown.
    """
    kinds = {"grpc": GrpcTransport, "rest": RestTransport}
    if server.protocol not in kinds:
        raise UserError(f"--protocol {server.protocol} is unknown; use grpc or rest")
    return kinds[server.protocol](server)


def _convert_to_lists(tensor: Any) -> Any:
    """Converts a TensorProto to nested lists and decodes its strings."""
    import tensorflow as tf

    values = tf.make_ndarray(tensor)
    if tensor.dtype == tf.string:
        values = np.vectorize(bytes.decode, otypes=[object])(values)
    return values.tolist()


def _reason(error: Exception) -> str:
    """Returns a short reason why a connection failed."""
    line = " ".join(str(error).split())
    return line.rpartition(": ")[2] or type(error).__name__
