"""Sends many requests at once to a server and measures how it answers.

    python tools/load_test.py --model mymodel --port 8500 --source_file F
    python tools/load_test.py --export_dir exported --model mymodel --source_file F

The first asks a running server. The second starts the test harness `serve_export.py`
(not TensorFlow Serving), once with and once without batching. Requests hold sentences
drawn from a file; clients send the next one when the last is answered.
"""

from __future__ import annotations

import contextlib
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from t2t_repro.command_line import cli
from t2t_repro.serving.transport import PORTS, Server, connect
from t2t_repro.system.atomic_file import read_lines
from t2t_repro.system.errors import UserError

SERVER = Path(__file__).parent / "serve_export.py"
_READY = re.compile(r"gRPC 127\.0\.0\.1:(\d+), REST 127\.0\.0\.1:(\d+)")


def measure(
    name: str,
    server: Server,
    lines: Sequence[str],
    *,
    clients: int,
    requests: int,
    batch_size: int,
) -> dict[str, Any]:
    """Sends `requests` requests, each of 1 to `batch_size` lines, from many clients.

    Returns `name`, `requests` and `sentences` that were answered, the `seconds` from
    the first to the last, `sentences_per_second`, and `latency_ms` of requests by
    percentile: "50", "90", "99", "100". Raises UserError if the server is not
    available, or refuses a request.
    """
    generator = random.Random(0)
    waiting = [
        generator.choices(lines, k=generator.randint(1, batch_size))
        for _ in range(requests)
    ]
    sentences = sum(map(len, waiting))
    transport = connect(server)
    # The first answer may come from a graph that has not run yet.
    _ask(transport, lines[:batch_size])
    started = time.monotonic()
    with ThreadPoolExecutor(clients) as pool:
        times = [*pool.map(lambda texts: _ask(transport, texts), waiting)]
    seconds = time.monotonic() - started
    transport.close()
    percentiles = {
        str(percent): round(float(np.percentile(times, percent)) * 1e3, 1)
        for percent in (50, 90, 99, 100)
    }
    return {
        "name": name,
        "requests": requests,
        "sentences": sentences,
        "seconds": round(seconds, 2),
        "sentences_per_second": round(sentences / seconds, 1),
        "latency_ms": percentiles,
    }


def text_of(measured: dict[str, Any]) -> str:
    """Describes what `measure` returned for people."""
    times = [f"p{key} {ms:,.0f}" for key, ms in measured["latency_ms"].items()]
    return (
        f"{measured['name']}: {measured['sentences_per_second']:,.1f} sentences/s "
        f"({measured['requests']:,} requests, {measured['sentences']:,} sentences in "
        f"{measured['seconds']:.1f} s), latency in ms {', '.join(times)}"
    )


@contextlib.contextmanager
def harness(
    export_dir: str, model: str, protocol: str, batching: bool
) -> Iterator[Server]:
    """Starts the test harness in a process of its own; yields where it answers.

    Raises UserError if it does not start.
    """
    flags = ["--export_dir", export_dir, "--model_name", model]
    flags += ["--port", "0", "--rest_port", "0"]
    flags += [] if batching else ["--no_batching"]
    process = subprocess.Popen(
        [sys.executable, str(SERVER), *flags], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        ready = _READY.search(process.stdout.readline())
        if ready is None:
            raise UserError(f"--export_dir {export_dir} cannot be served; see above")
        port = int(ready[1 if protocol == "grpc" else 2])
        yield Server("127.0.0.1", port, model, protocol, timeout=600)
    finally:
        process.terminate()
        process.communicate()


def _ask(transport: Any, texts: Sequence[str]) -> float:
    """Translates one request's texts; returns the seconds that it took."""
    started = time.monotonic()
    outputs = ("translations", "scores")
    answer = transport.predict("serving_default", {"text": list(texts)}, outputs)
    if len(answer["translations"]) != len(texts):
        raise UserError(f"{transport.server} gave another number of answers")
    return time.monotonic() - started


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(
        "Measures throughput and latency of a server under concurrent requests."
    )
    add, count = parser.add_argument, cli.at_least(1)
    add("--model", required=True, help="name of the model there")
    add("--host", default="localhost", help="name of the server")
    port = "(default: grpc 8500, rest 8501)"
    add("--port", type=cli.at_least(1, 65_535), help=port)
    add("--export_dir", help="start the test harness with this export instead")
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
    found = []
    if args.export_dir is None:
        port = args.port or PORTS[args.protocol]
        server = Server(args.host, port, args.model, args.protocol)
        found.append(measure(str(server), server, lines, **load))
    else:
        for name, batching in (("batching", True), ("no batching", False)):
            with harness(
                args.export_dir, args.model, args.protocol, batching
            ) as server:
                found.append(measure(name, server, lines, **load))
    text = "\n".join(map(text_of, found))
    cli.print_result(text, {"load": load, "measured": found}, args.json)


if __name__ == "__main__":
    cli.run(main)
