"""Sends many requests at once to a server and measures how it answers.

    python tools/benchmarks/load_test.py --model mymodel --port 8500 --source_file F

The server may be the test harness `tools/serve_export.py`, once with batching and once
with `--no_batching`. Requests hold sentences drawn from a file; clients send the next
one when the last is answered.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import report
from benchmarks.report import Result
from t2t_repro.command_line import cli
from t2t_repro.serving.transport import PORTS, Server, connect
from t2t_repro.system.atomic_file import read_lines
from t2t_repro.system.errors import UserError


def measure(
    server: Server,
    lines: Sequence[str],
    row: Result,
    *,
    clients: int,
    requests: int,
    batch_size: int,
) -> None:
    """Sends `requests` requests, each of 1 to `batch_size` lines, from many clients.

    `row` gets, with each answer, the number of requests and sentences, the seconds
    since the first request, sentences a second, and percentiles of the latency.
    Raises UserError if the server is not available, or rejects a request.
    """
    generator = random.Random(0)
    waiting = [
        generator.choices(lines, k=generator.randint(1, batch_size))
        for _ in range(requests)
    ]
    transport = connect(server)
    # The first answer may come from a graph that has not run yet.
    _ask(transport, lines[:batch_size])
    started, times, sentences = time.monotonic(), [], 0
    with ThreadPoolExecutor(clients) as pool:
        answers = pool.map(lambda texts: _ask(transport, texts), waiting)
        for texts, latency in zip(waiting, answers, strict=True):
            times.append(latency * 1e3)
            sentences += len(texts)
            seconds = time.monotonic() - started
            row |= {"requests": len(times), "sentences": sentences, "s": seconds}
            row["sentences/s"] = sentences / seconds
            for percent in (50, 90, 99, 100):
                row[f"p{percent} (ms)"] = float(np.percentile(times, percent))
    transport.close()


def _ask(transport: Any, texts: Sequence[str]) -> float:
    """Translates one request's texts; returns the seconds that it took."""
    started = time.monotonic()
    outputs = ("translations", "scores")
    answer = transport.predict("serving_default", {"text": list(texts)}, outputs)
    if len(answer["translations"]) != len(texts):
        raise UserError(f"{transport.server} gave another number of answers")
    return time.monotonic() - started


def _parser() -> cli.ArgumentParser:
    parser = report.parser(
        "Measures throughput and latency of a server under concurrent requests."
    )
    add, count = parser.add_argument, cli.at_least(1)
    add("--model", required=True, help="name of the model there")
    add("--host", default="localhost", help="name of the server")
    port = "(default: grpc 8500, rest 8501)"
    add("--port", type=cli.at_least(1, 65_535), help=port)
    add("--protocol", choices=tuple(PORTS), default="grpc", help="how to ask")
    add("--source_file", required=True, help="sentences, one a line")
    add("--clients", type=count, default=16, help="that ask at once")
    add("--requests", type=count, default=500, help="of all of them")
    add("--batch_size", type=count, default=1, help="sentences, at most")
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, measures and prints."""
    args = _parser().parse_args(argv)
    lines = read_lines(args.source_file)
    if args.protocol == "grpc":
        cli.start_tensorflow(args.verbose)
    load = {name: getattr(args, name) for name in ("clients", "requests", "batch_size")}
    with report.reported(args) as result:
        port = args.port or PORTS[args.protocol]
        server = Server(args.host, port, args.model, args.protocol)
        row: Result = {}
        result["tables"][f"{args.clients} clients"] = {str(server): row}
        measure(server, lines, row, **load)


if __name__ == "__main__":
    cli.run(main)
