"""Translates standard input with a model on a TensorFlow Serving server.

Each input line gives one output line, in the same order. The model must have been
exported with t2t_repro.export.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from t2t_repro.command_line import cli
from t2t_repro.serving.transport import PORTS, Server
from t2t_repro.system.atomic_file import bounded_lines, decode_lines
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.plain_tokenizer import load

# Longer lines are cut. Exports read only the first 65,536 characters of a text.
_MOST_BYTES = 1 << 20


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(__doc__, json_flag=False)
    add = parser.add_argument
    add("--host", default="localhost", help="host name of the server")
    add(
        "--port",
        type=cli.at_least(1, 65_535),
        help=f"port of the server (default: {PORTS['grpc']} for grpc, {PORTS['rest']} "
        "for rest)",
    )
    add("--model", required=True, help="name of the model on the server")
    add(
        "--version",
        type=cli.at_least(1),
        help="version of the model (default: the newest)",
    )
    add(
        "--tokenizer",
        help="folder assets.extra/tokenizer of the model if it takes ids "
        "(export --input ids)",
    )
    add("--protocol", choices=tuple(PORTS), default="grpc", help="protocol of requests")
    add("--batch_size", type=cli.at_least(1), default=32, help="lines per request")
    add("--concurrency", type=cli.at_least(1), default=4, help="simultaneous requests")
    add(
        "--timeout",
        type=cli.between(0.001, 86_400),
        default=60.0,
        help="seconds to wait for a response",
    )
    add(
        "--retries",
        type=cli.at_least(0),
        default=6,
        help="retries per request if the server is busy or unreachable, at most 8 s "
        "apart",
    )
    add(
        "--scores",
        action="store_true",
        help="print the score and a tab before each translation",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags and translates from standard input to standard output."""
    args = _parser().parse_args(argv)
    if args.protocol == "grpc":
        cli.start_tensorflow(args.verbose)
    from t2t_repro.serving.client import Client
    from t2t_repro.serving.transport import TokenizingTransport, connect

    tokenizer = None
    if args.tokenizer is not None:
        try:
            tokenizer = load(args.tokenizer)
        except (OSError, ValueError) as error:
            raise UserError(f"--tokenizer: {error}") from None
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
    # On a terminal each line is translated immediately.
    interactive = sys.stdin.isatty()
    sizes = (1, 1) if interactive else (args.batch_size, args.concurrency)
    transport = connect(server)
    if tokenizer is not None:
        transport = TokenizingTransport(transport, tokenizer)
    with Client(transport, *sizes) as client:
        for text, score in client.translate(lines):
            print(f"{score:.6f}\t{text}" if args.scores else text, flush=interactive)


if __name__ == "__main__":
    cli.run(main)
