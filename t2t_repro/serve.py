"""Serves an export over REST, as TensorFlow Serving does, without Docker.

It is for trying and for notebooks: one model, without authentication. In production,
use TensorFlow Serving.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from t2t_repro.command_line import cli
from t2t_repro.serving.server_files import BATCHING, read_model_name
from t2t_repro.serving.transport import PORTS
from t2t_repro.serving.versions import find_newest


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(__doc__, json_flag=False)
    add = parser.add_argument
    add("--export_dir", type=cli.path, required=True, help="folder of all versions")
    add(
        "--model_name",
        help="name of the model in requests (default: the name in models.config)",
    )
    add(
        "--host",
        default="127.0.0.1",
        help="address to listen on; others than this machine's own are not protected",
    )
    add(
        "--port",
        type=cli.int_range(0, 65_535),
        default=PORTS["rest"],
        help="port; 0 for a free one",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags and serves the export until it is interrupted."""
    args = _parser().parse_args(argv)
    export_dir = Path(args.export_dir)
    find_newest(export_dir)  # A wrong folder is reported before TensorFlow starts.
    name = args.model_name or read_model_name(export_dir)
    cli.start_tensorflow(args.verbose)
    import tensorflow as tf

    if not args.verbose:
        # TensorFlow calls its graph loader, which needs no code of the model,
        # deprecated.
        tf.get_logger().setLevel("ERROR")
    from t2t_repro.serving.server import rest
    from t2t_repro.serving.server.batching import BatchingParameters
    from t2t_repro.serving.server.service import Service

    parameters = export_dir / BATCHING
    batching = BatchingParameters.read(parameters) if parameters.exists() else None
    service = Service(export_dir, name, batching)
    server, port = rest.start(service, args.port, args.host)
    try:
        print(
            f"serving {name}, version {service.version}: "
            f"http://{args.host}:{port}/v1/models/{name}; stop with Ctrl-C",
            flush=True,
        )
        threading.Event().wait()
    finally:
        print("ending after the running requests; Ctrl-C: at once", flush=True)
        server.shutdown()
        server.server_close()
        service.close()


if __name__ == "__main__":
    cli.run(main)
