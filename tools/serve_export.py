"""Serves an export on localhost with a simulation of TensorFlow Serving, for tests.

    python tools/serve_export.py --export_dir exported --model_name mymodel

`serving_harness` describes the differences from TensorFlow Serving.
"""

import signal
import threading
from collections.abc import Sequence
from pathlib import Path

from t2t_repro.command_line import cli


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(
        "Serves the newest version of an export on 127.0.0.1 until it is interrupted. "
        "This test server simulates TensorFlow Serving; it is too slow and too simple "
        "to replace it.",
        json_flag=False,
    )
    parser.add_argument("--export_dir", required=True, help="folder of the versions")
    parser.add_argument(
        "--model_name", required=True, help="name of the model in requests"
    )
    parser.add_argument(
        "--port",
        type=cli.at_least(0, 65_535),
        default=8500,
        help="gRPC port, or 0 for a free port",
    )
    parser.add_argument(
        "--rest_port",
        type=cli.at_least(0, 65_535),
        default=8501,
        help="REST port, or 0 for a free port",
    )
    parser.add_argument(
        "--no_batching", action="store_true", help="run each request separately"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags and serves the export."""
    args = _parser().parse_args(argv)
    cli.start_tensorflow(args.verbose)
    from serving_harness.batching import BatchingParameters
    from serving_harness.running import serving

    export_dir = Path(args.export_dir)
    parameters = export_dir / "batching_parameters.txt"
    batching = None if args.no_batching else BatchingParameters.read(parameters)
    ports = (args.port, args.rest_port)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with serving(export_dir, args.model_name, batching, *ports) as running:
        print(
            f"serving {args.model_name} version {running.service.version}: "
            f"gRPC 127.0.0.1:{running.grpc_port}, REST 127.0.0.1:{running.rest_port} "
            "(a test tool, not TensorFlow Serving)",
            flush=True,
        )
        stop.wait()


if __name__ == "__main__":
    cli.run(main)
