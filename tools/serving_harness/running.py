"""Starts and stops the test server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from serving_harness import grpc_front
from t2t_repro.serving.server import rest
from t2t_repro.serving.server.batching import BatchingParameters
from t2t_repro.serving.server.service import Service


class Running(NamedTuple):
    """A model served on localhost, with the ports of both protocols."""

    service: Service
    grpc_port: int
    rest_port: int


@contextmanager
def serve(
    export_dir: Path,
    model_name: str,
    batching: BatchingParameters | None = None,
    grpc_port: int = 0,
    rest_port: int = 0,
) -> Iterator[Running]:
    """Serves the newest version of an export in this process.

    Args:
        export_dir: Folder of the versions.
        model_name: Name of the model in requests.
        batching: Batching parameters; None runs each request separately.
        grpc_port: gRPC port; 0 selects a free port.
        rest_port: REST port; 0 selects a free port.
    """
    service = Service(export_dir, model_name, batching)
    grpc_server, grpc_port = grpc_front.start(service, grpc_port)
    rest_server, rest_port = rest.start(service, rest_port)
    try:
        yield Running(service, grpc_port, rest_port)
    finally:
        rest_server.shutdown()
        rest_server.server_close()
        grpc_server.stop(grace=None).wait()
        service.close()
