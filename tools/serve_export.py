"""Serves an export on localhost with a simulation of TensorFlow Serving, for tests.

    python tools/serve_export.py --export_dir exported --model_name mymodel

`serving_harness` describes the differences from TensorFlow Serving.
"""

import signal
import threading
from collections.abc import Sequence
from pathlib import Path

from flags import REQUIRED, parser

from t2t_repro.command_line import cli


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags and serves the export."""
    port = cli.int_range(0, 65_535)
    args = parser(
        __doc__,
        ("export_dir", cli.path, REQUIRED, "folder of the versions"),
        ("model_name", str, REQUIRED, "name of the model in requests"),
        ("port", port, 8500, "gRPC port, or 0 for a free port"),
        ("rest_port", port, 8501, "REST port, or 0 for a free port"),
        ("no_batching", bool, False, "run each request separately"),
        json_flag=False,
    ).parse_args(argv)
    cli.start_tensorflow(args.verbose)
    from serving_harness.batching import BatchingParameters
    from serving_harness.running import serve

    export_dir = Path(args.export_dir)
    parameters = export_dir / "batching_parameters.txt"
    batching = None if args.no_batching else BatchingParameters.read(parameters)
    ports = (args.port, args.rest_port)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with serve(export_dir, args.model_name, batching, *ports) as running:
        print(
            f"serving {args.model_name} version {running.service.version}: "
            f"gRPC 127.0.0.1:{running.grpc_port}, REST 127.0.0.1:{running.rest_port} "
            "(a test tool, not TensorFlow Serving)",
            flush=True,
        )
        stop.wait()


if __name__ == "__main__":
    cli.run(main)
