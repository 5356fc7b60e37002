"""Requests to a TensorFlow Serving, over gRPC or REST, until it answers."""

from __future__ import annotations

import json
import random
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

PORTS = {"grpc": 8500, "rest": 8501}
"""The stock server's port for each protocol."""

_FIRST_WAIT, _LONGEST_WAIT = 0.25, 8.0
_BUSY_STATUS = (429, 502, 503, 504)

Texts = Mapping[str, Sequence[str]]
Answer = dict[str, Any]
"""Lists, nested as the output is, by the output's name; strings are decoded."""


@dataclass(frozen=True)
class Server:
    """Where a model is served, and how long to wait for it.

    Attributes:
        host: name or address.
        port: of the protocol.
        model: the model's name there.
        protocol: "grpc" or "rest".
        version: of the model; None is the newest.
        timeout: seconds that a request may take.
        retries: how often a request is sent again while the server cannot be reached
            or is busy; the waits double from a quarter of a second to eight.
    """

    host: str
    port: int
    model: str
    protocol: str = "grpc"
    version: int | None = None
    timeout: float = 60.0
    retries: int = 6

    def __str__(self) -> str:
        """Names it as errors do."""
        return f"{self.host}:{self.port} ({self.protocol})"


class UnavailableError(Exception):
    """The server cannot be reached or is busy, which may pass."""


class Transport(ABC):
    """One protocol to one server; threads may share it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._closed = threading.Event()

    def predict(self, signature: str, inputs: Texts, outputs: Sequence[str]) -> Answer:
        """Asks a signature, again and again while the server is not available.

        Args:
            signature: its name.
            inputs: strings (batch,) by name.
            outputs: the names of all its outputs.

        Raises:
            UserError: the server was not available in time, or refuses the request.
        """
        wait = _FIRST_WAIT
        for attempt in range(self.server.retries + 1):
            try:
                return self._checked(self._ask(signature, inputs, outputs), outputs)
            except UnavailableError as error:
                reason = error
            # Not all clients at once. Closing ends the waiting.
            last = attempt == self.server.retries
            if last or self._closed.wait(wait * random.uniform(0.5, 1.0)):
                break
            wait = min(2 * wait, _LONGEST_WAIT)
        raise UserError(
            f"no server answers at {self.server}: {reason}; start it, or mend --host, "
            "--port and --protocol"
        )

    def close(self) -> None:
        """Ends the connections, and the waits of other threads."""
        self._closed.set()

    def _checked(self, answer: Answer, outputs: Sequence[str]) -> Answer:
        """Refuses the answer of another kind of model."""
        if missing := [name for name in outputs if name not in answer]:
            raise UserError(
                f"{self.server}: the model {self.server.model} does not answer with "
                f"{', '.join(missing)}; it was not exported by t2t_repro.export"
            )
        return answer

    def _refused(self, reason: object) -> UserError:
        """Says that a request was refused."""
        line = " ".join(str(reason).split())
        return UserError(f"{self.server} refuses the request: {line}")

    def _late(self) -> UserError:
        """Says that a request took too long."""
        return UserError(
            f"{self.server} gave no answer within {self.server.timeout:g} s; send "
            "fewer sentences at once (--batch_size) or wait longer (--timeout)"
        )

    @abstractmethod
    def _ask(self, signature: str, inputs: Texts, outputs: Sequence[str]) -> Answer:
        """Sends one request.

        Raises:
            UnavailableError: it may be sent again.
            UserError: it was refused, or not answered in time.
        """


class GrpcTransport(Transport):
    """Requests over gRPC, whose messages need TensorFlow."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        import grpc

        from t2t_repro.serving import messages

        # Attention maps are larger than the 4 MB that are allowed without being asked.
        options = [("grpc.max_receive_message_length", -1)]
        address = f"{server.host}:{server.port}"
        self._channel = grpc.insecure_channel(address, options)
        self._predict = self._channel.unary_unary(
            messages.PREDICT,
            request_serializer=messages.PredictRequest.SerializeToString,
            response_deserializer=messages.PredictResponse.FromString,
        )

    def close(self) -> None:
        """Ends the connection."""
        super().close()
        self._channel.close()

    def _ask(self, signature: str, inputs: Texts, outputs: Sequence[str]) -> Answer:
        from grpc import RpcError, StatusCode

        from t2t_repro.serving.messages import predict_request

        request = predict_request(self.server.model, signature, inputs)
        if self.server.version is not None:
            request.model_spec.version.value = self.server.version
        try:
            response = self._predict(request, timeout=self.server.timeout)
        except RpcError as error:
            # The batching queue says the second where a request waited too long.
            if error.code() in (StatusCode.UNAVAILABLE, StatusCode.RESOURCE_EXHAUSTED):
                raise UnavailableError(error.details()) from None
            if error.code() == StatusCode.DEADLINE_EXCEEDED:
                raise self._late() from None
            raise self._refused(error.details()) from None
        return {name: _to_lists(tensor) for name, tensor in response.outputs.items()}


class RestTransport(Transport):
    """Requests over REST, with nothing but JSON."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        import urllib3

        sockets: WeakSet[socket.socket] = WeakSet()

        class Connection(urllib3.connection.HTTPConnection):
            """A connection whose socket is known while a request is under way."""

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
        """Ends the connections, also those on which an answer is awaited."""
        super().close()
        for each in list(self._sockets):
            with suppress(OSError):  # It is not connected any more.
                each.shutdown(socket.SHUT_RDWR)
        self._pool.clear()

    def _ask(self, signature: str, inputs: Texts, outputs: Sequence[str]) -> Answer:
        from urllib3 import exceptions

        body = {"signature_name": signature, "inputs": inputs}
        try:
            response = self._pool.request("POST", self._url, json=body)
        except exceptions.ReadTimeoutError:
            raise self._late() from None
        except exceptions.LocationValueError as error:
            raise self._refused(error) from None
        except exceptions.HTTPError as error:
            raise UnavailableError(_reason(error)) from None
        try:
            answer = json.loads(response.data)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            answer = {"error": f"HTTP {response.status} without JSON"}
        if response.status in _BUSY_STATUS:
            raise UnavailableError(f"HTTP {response.status}: {answer.get('error')}")
        if response.status != 200 or "outputs" not in answer:
            raise self._refused(answer.get("error", f"HTTP {response.status}"))
        found = answer["outputs"]
        # The server leaves the name away where a model has one output.
        return found if isinstance(found, dict) else {outputs[0]: found}


def connect(server: Server) -> Transport:
    """Returns the transport of a server's protocol; nothing is sent yet.

    Raises:
        UserError: there is no such protocol.
    """
    kinds = {"grpc": GrpcTransport, "rest": RestTransport}
    if server.protocol not in kinds:
        raise UserError(f"--protocol {server.protocol}: it is grpc or rest")
    return kinds[server.protocol](server)


def _to_lists(tensor: Any) -> list[Any]:
    """Reads a TensorProto into nested lists, its strings decoded."""
    import tensorflow as tf

    values = tf.make_ndarray(tensor)
    if tensor.dtype == tf.string:
        values = np.vectorize(bytes.decode, otypes=[object])(values)
    found: list[Any] = values.tolist()
    return found


def _reason(error: Exception) -> str:
    """Says in a few words why a connection failed."""
    line = " ".join(str(error).split())
    return line.rpartition(": ")[2] or type(error).__name__
