"""Translates standard input with a model on a TensorFlow Serving server.

Each input line gives one output line, in the same order. Without --split_sentences the
server cuts lines to the input length of the export. The model must have been
exported with t2t_repro.export. With --verify, the command translates nothing: it
compares the files of an export with the digests in its model card.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

from t2t_repro.command_line import cli
from t2t_repro.serving.digests import verify
from t2t_repro.serving.transport import PORTS, Server
from t2t_repro.system.atomic_file import decode_lines, truncate_lines
from t2t_repro.system.errors import UserError, format_count
from t2t_repro.tokenizers.plain_tokenizer import PlainTokenizer, load

# Longer lines are cut.
_MOST_BYTES = 1 << 20
_MOST_CHARACTERS = 65_536  # of a text that exports read
_NOTES_PRINTED = 5


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(__doc__, json_flag=False)
    add = parser.add_argument
    add("--host", default="localhost", help="host name of the server")
    add(
        "--port",
        type=cli.int_range(1, 65_535),
        help=f"port of the server (default: {PORTS['grpc']} for grpc, {PORTS['rest']} "
        "for rest)",
    )
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--model", help="name of the model on the server")
    action.add_argument(
        "--verify",
        type=cli.path,
        metavar="DIR",
        help="folder of a version (EXPORT_DIR/1), whose files are checked",
    )
    add(
        "--version",
        type=cli.int_range(1),
        help="version of the model (default: the newest)",
    )
    add(
        "--tokenizer",
        type=cli.path,
        help="folder assets.extra/tokenizer of the model if it takes ids "
        "(export --input ids)",
    )
    add("--protocol", choices=tuple(PORTS), default="grpc", help="protocol of requests")
    add("--batch_size", type=cli.int_range(1), default=32, help="lines per request")
    add("--concurrency", type=cli.int_range(1), default=4, help="simultaneous requests")
    add(
        "--timeout",
        type=cli.float_range(0.001, 86_400),
        default=60.0,
        help="seconds to wait for a response",
    )
    add(
        "--retries",
        type=cli.int_range(0),
        default=6,
        help="retries per request if the server is busy or unreachable, at most 8 s "
        "apart",
    )
    add(
        "--split_sentences",
        action="store_true",
        help="translate each sentence of a line separately",
    )
    add(
        "--scores",
        action="store_true",
        help="print the score and a tab before each translation",
    )
    return parser


def _tokenizer(args: Namespace) -> PlainTokenizer | None:
    """Returns the tokenizer of `--tokenizer`; None without this flag."""
    if args.tokenizer is None:
        return None
    if args.split_sentences:
        raise UserError(
            "--split_sentences cannot be combined with --tokenizer: an export that "
            "takes ids does not divide texts"
        )
    try:
        return load(args.tokenizer)
    except (OSError, ValueError) as error:
        raise UserError(f"--tokenizer: {error}") from None


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags and translates standard input, or verifies an export."""
    args = _parser().parse_args(argv)
    if args.verify is not None:
        print(f"{format_count(verify(Path(args.verify)), 'file')} verified")
        return
    if args.protocol == "grpc":
        cli.start_tensorflow(args.verbose)
    from t2t_repro.serving.client import Client
    from t2t_repro.serving.transport import TokenizingTransport, connect

    tokenizer = _tokenizer(args)
    server = Server(
        args.host,
        args.port or PORTS[args.protocol],
        args.model,
        args.protocol,
        args.version,
        args.timeout,
        args.retries,
    )
    raw = truncate_lines(sys.stdin.buffer, _MOST_BYTES)
    notes: list[str] = []
    cut = 0
    # On a terminal each line is translated immediately.
    interactive = sys.stdin.isatty()
    transport = connect(server)
    if tokenizer is not None:
        transport = TokenizingTransport(transport, tokenizer)

    def lines() -> Iterator[str]:
        nonlocal cut
        for line in decode_lines(raw, "standard input"):
            cut += len(line) > _MOST_CHARACTERS
            yield line

    def note(number: int, text: str) -> None:
        notes.append(text)
        if len(notes) <= _NOTES_PRINTED:
            cli.log(f"line {number:,}: {text}")

    batch_size, concurrency = args.batch_size, args.concurrency
    if interactive:
        batch_size = concurrency = 1
    with Client(transport, batch_size, concurrency, note) as client:
        for text, score in client.translate(lines(), args.split_sentences):
            print(f"{score:.6f}\t{text}" if args.scores else text, flush=interactive)
    if len(notes) > _NOTES_PRINTED:
        cli.log(f"the same of {len(notes) - _NOTES_PRINTED:,} more lines")
    if cut and not notes:
        cli.log(f"the server cuts lines to {_MOST_CHARACTERS:,} characters: {cut:,}")


if __name__ == "__main__":
    cli.run(main)
