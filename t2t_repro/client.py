"""Translates standard input through a TensorFlow Serving server.

One line comes out for every line that goes in, in their order. The model is one that
t2t_repro.export wrote.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from t2t_repro.command_line import cli
from t2t_repro.serving.transport import PORTS, Server
from t2t_repro.system.atomic_file import bounded_lines, decode_lines

# Longer lines than any server reads to the end.
_MOST_BYTES = 1 << 20


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(__doc__, json_flag=False)
    parser.add_argument("--host", default="localhost", help="name of the server")
    parser.add_argument(
        "--port",
        type=cli.at_least(1, 65_535),
        help=f"of the protocol (default: grpc {PORTS['grpc']}, rest {PORTS['rest']})",
    )
    parser.add_argument("--model", required=True, help="name of the model there")
    parser.add_argument(
        "--version", type=cli.at_least(1), help="of the model (default: the newest)"
    )
    parser.add_argument(
        "--protocol", choices=tuple(PORTS), default="grpc", help="how to ask"
    )
    parser.add_argument(
        "--batch_size", type=cli.at_least(1), default=32, help="lines in a request"
    )
    parser.add_argument(
        "--concurrency", type=cli.at_least(1), default=4, help="simultaneous requests"
    )
    parser.add_argument(
        "--timeout",
        type=cli.between(0.001, 86_400),
        default=60.0,
        help="seconds until a request fails",
    )
    parser.add_argument(
        "--retries",
        type=cli.at_least(0),
        default=6,
        help="retries of a request if the server is busy or down, up to 8 s apart",
    )
    parser.add_argument(
        "--scores", action="store_true", help="begin lines with the score and a tab"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags and translates from standard input to standard output."""
    args = _parser().parse_args(argv)
    if args.protocol == "grpc":
        cli.start_tensorflow(args.verbose)
    from t2t_repro.serving.client import Client

    server = Server(
        args.host,
        args.port or PORTS[args.protocol],
        args.model,
        args.protocol,
        args.version,
        args.timeout,
        args.retries,
    )
    raw = bounded_lines(sys.stdin.buffer, _MOST_BYTES)
    lines = decode_lines(raw, "standard input")
    # Somebody who types waits for each line.
    typed = sys.stdin.isatty()
    sizes = (1, 1) if typed else (args.batch_size, args.concurrency)
    with Client(server, *sizes) as client:
        for text, score in client.translate(lines):
            print(f"{score:.6f}\t{text}" if args.scores else text, flush=typed)


if __name__ == "__main__":
    cli.run(main)
