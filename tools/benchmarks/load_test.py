"""Measures throughput and latency of a server under concurrent requests.

    python tools/benchmarks/load_test.py --model mymodel --port 8500 --source_file F

The server may be the test harness `tools/serve_export.py`, with batching or with
`--no_batching`. The sentences of each request are drawn from a file. A client sends its
next request after it has received the previous answer.
"""

from __future__ import annotations

import random
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from flags import REQUIRED, one_of

from benchmarks import report
from benchmarks.report import Result
from t2t_repro.command_line import cli
from t2t_repro.serving.transport import PORTS, Server, connect
from t2t_repro.system.atomic_file import read_lines
from t2t_repro.system.errors import UserError


def measure(server: Server, lines: Sequence[str], row: Result, args: Namespace) -> None:
    """Sends requests from concurrent clients and measures the latencies.

    Args:
        server: Server to test.
        lines: Sentences to draw from.
        row: Row of figures, updated after each answer.
        args: Flags: `clients`, `requests` and `batch_size`.

    Raises:
        UserError: The server is unavailable or rejects a request.
    """
    generator = random.Random(0)
    queue = [
        generator.choices(lines, k=generator.randint(1, args.batch_size))
        for _ in range(args.requests)
    ]
    transport = connect(server)
    # Warm-up: the first run of a graph is slow.
    _request(transport, lines[: args.batch_size])
    started, times, sentences = time.monotonic(), [], 0
    with ThreadPoolExecutor(args.clients) as pool:
        answers = pool.map(lambda texts: _request(transport, texts), queue)
        for texts, latency in zip(queue, answers, strict=True):
            times.append(latency * 1e3)
            sentences += len(texts)
            seconds = time.monotonic() - started
            row |= {"requests": len(times), "sentences": sentences, "s": seconds}
            row["sentences/s"] = sentences / seconds
            for percent in (50, 90, 99, 100):
                row[f"p{percent} (ms)"] = float(np.percentile(times, percent))
    transport.close()


def _request(transport: Any, texts: Sequence[str]) -> float:
    """Sends a request with texts and returns its latency in seconds."""
    started = time.monotonic()
    outputs = ("translations", "scores")
    answer = transport.predict("serving_default", {"text": list(texts)}, outputs)
    if len(answer["translations"]) != len(texts):
        count = len(answer["translations"])
        raise UserError(
            f"{transport.server} returned {count} translations for {len(texts)} texts"
        )
    return time.monotonic() - started


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, runs the load test and prints the figures."""
    count, number = cli.at_least(1), cli.at_least(1, 65_535)
    args = report.parser(
        __doc__,
        ("model", str, REQUIRED, "name of the model on the server"),
        ("host", str, "localhost", "host name of the server"),
        ("port", number, None, "port (default: 8500 for grpc, 8501 for rest)"),
        ("protocol", one_of(PORTS), "grpc", "protocol, grpc or rest"),
        ("source_file", str, REQUIRED, "file with one sentence per line"),
        ("clients", count, 16, "number of concurrent clients"),
        ("requests", count, 500, "total number of requests"),
        ("batch_size", count, 1, "maximum sentences per request"),
    ).parse_args(argv)
    lines = read_lines(args.source_file)
    if args.protocol == "grpc":
        cli.start_tensorflow(args.verbose)
    with report.reported(args) as result:
        port = args.port or PORTS[args.protocol]
        server = Server(args.host, port, args.model, args.protocol)
        row: Result = {}
        result["tables"][f"{args.clients} clients"] = {str(server): row}
        measure(server, lines, row, args)


if __name__ == "__main__":
    cli.run(main)
