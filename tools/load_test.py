"""Sends many requests at once to a server and measures how it answers.

    python tools/load_test.py --model mymodel --port 8500 --source_file F
    python tools/load_test.py --export_dir exported --model mymodel --source_file F

The first asks a server that runs. The second starts the test harness (see
`serve_export.py`, which is not TensorFlow Serving) in a process of its own, once with
and once without batching. Requests hold sentences of mixed length, drawn from a file;
clients send the next request when the last is answered.
"""

from __future__ import annotations

import contextlib
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from t2t_repro.command_line import cli
from t2t_repro.serving.transport import PORTS, Server, connect
from t2t_repro.system.errors import UserError
from t2t_repro.system.text_files import read_lines

SERVER = Path(__file__).parent / "serve_export.py"
_READY = re.compile(r"gRPC 127\.0\.0\.1:(\d+), REST 127\.0\.0\.1:(\d+)")


@dataclass(frozen=True)
class Load:
    """What is sent.

    Attributes:
        clients: that ask at the same time.
        requests: of all clients together.
        batch_size: sentences in a request, at most; 1 to that many at random.
        seed: of the sentences' choice.
    """

    clients: int
    requests: int
    batch_size: int
    seed: int = 0


@dataclass(frozen=True)
class Measured:
    """How a server answered.

    Attributes:
        name: which server.
        requests: how many were answered.
        sentences: in them.
        seconds: from the first to the last.
        sentences_per_second: the throughput.
        latency_ms: of requests, milliseconds, by percentile: "50", "90", "99", "100".
    """

    name: str
    requests: int
    sentences: int
    seconds: float
    sentences_per_second: float
    latency_ms: dict[str, float]

    def text(self) -> str:
        """Describes it for people."""
        times = ", ".join(f"p{key} {ms:,.0f}" for key, ms in self.latency_ms.items())
        return (
            f"{self.name}: {self.sentences_per_second:,.1f} sentences/s "
            f"({self.requests:,} requests, {self.sentences:,} sentences in "
            f"{self.seconds:.1f} s), latency in ms {times}"
        )


def measure(name: str, server: Server, lines: Sequence[str], load: Load) -> Measured:
    """Sends a load to a server.

    Args:
        name: what it is called in the result.
        server: who is asked.
        lines: sentences to draw from.
        load: how much of them.

    Raises:
        UserError: the server is not available, or refuses a request.
    """
    generator = random.Random(load.seed)
    waiting = [
        generator.choices(lines, k=generator.randint(1, load.batch_size))
        for _ in range(load.requests)
    ]
    sentences = sum(map(len, waiting))
    times: list[float] = []
    failed: list[BaseException] = []
    transport = connect(server)
    # The first answer may come from a graph that has not run yet.
    _ask(transport, lines[: load.batch_size])

    def client() -> None:
        try:
            while not failed:
                try:
                    texts = waiting.pop()
                except IndexError:
                    return
                started = time.monotonic()
                _ask(transport, texts)
                times.append(time.monotonic() - started)
        except BaseException as error:
            failed.append(error)

    started = time.monotonic()
    threads = [threading.Thread(target=client) for _ in range(load.clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - started
    transport.close()
    if failed:
        raise failed[0]
    return Measured(
        name,
        load.requests,
        sentences,
        round(seconds, 2),
        round(sentences / seconds, 1),
        {
            str(percent): round(float(np.percentile(times, percent)) * 1e3, 1)
            for percent in (50, 90, 99, 100)
        },
    )


@contextlib.contextmanager
def harness(
    export_dir: str, model: str, protocol: str, batching: bool
) -> Iterator[Server]:
    """Starts the test harness in a process of its own.

    Yields:
        Where it answers.

    Raises:
        UserError: it does not start.
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


def _ask(transport: Any, texts: Sequence[str]) -> None:
    """Translates one request's texts."""
    outputs = ("translations", "scores")
    answer = transport.predict("serving_default", {"text": list(texts)}, outputs)
    if len(answer["translations"]) != len(texts):
        raise UserError(f"{transport.server} gave another number of answers")


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(
        "Measures throughput and latency of a server under concurrent requests."
    )
    parser.add_argument("--model", required=True, help="name of the model there")
    parser.add_argument("--host", default="localhost", help="name of the server")
    parser.add_argument(
        "--port", type=cli.at_least(1, 65_535), help="(default: grpc 8500, rest 8501)"
    )
    parser.add_argument(
        "--export_dir", help="start the test harness with this export instead"
    )
    parser.add_argument(
        "--protocol", choices=tuple(PORTS), default="grpc", help="how to ask"
    )
    parser.add_argument("--source_file", required=True, help="sentences, one a line")
    parser.add_argument(
        "--clients", type=cli.at_least(1), default=16, help="that ask at once"
    )
    parser.add_argument(
        "--requests", type=cli.at_least(1), default=500, help="of all of them"
    )
    parser.add_argument(
        "--batch_size", type=cli.at_least(1), default=1, help="sentences, at most"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, measures and prints."""
    args = _parser().parse_args(argv)
    lines = read_lines(args.source_file)
    if args.protocol == "grpc":
        cli.start_tensorflow(args.verbose)
    load = Load(args.clients, args.requests, args.batch_size)
    found = []
    if args.export_dir is None:
        port = args.port or PORTS[args.protocol]
        server = Server(args.host, port, args.model, args.protocol)
        found.append(measure(str(server), server, lines, load))
    else:
        for name, batching in (("batching", True), ("no batching", False)):
            with harness(
                args.export_dir, args.model, args.protocol, batching
            ) as server:
                found.append(measure(name, server, lines, load))
    cli.print_result(
        "\n".join(each.text() for each in found),
        {"load": asdict(load), "measured": [asdict(each) for each in found]},
        args.json,
    )


if __name__ == "__main__":
    cli.run(main)
