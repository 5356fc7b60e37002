"""Client for translations, n-best lists and scores from a server."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any, NamedTuple

from t2t_repro.serving.transport import NOTES, Server, Transport, connect


class ServedTranslation(NamedTuple):
    """A translation from a server.

    Attributes:
        text: Translation.
        score: Log probability divided by the length penalty.
    """

    text: str
    score: float


def _warn(number: int, note: str) -> None:
    warnings.warn(f"text {number:,}: {note}", stacklevel=2)


class Client(AbstractContextManager["Client"]):
    """Sends batches of requests to a server, several of them in parallel.

    The client is a context manager that closes the connections:

        with Client(Server("localhost", 8500, "mymodel")) as client:
            for translation in client.translate(lines):
                ...

    Args:
        server: Server, or transport to the server.
        batch_size: Number of sentences per request. The exported server configuration
            accepts at most 64.
        concurrency: Number of parallel requests.
        note: Called with the number of a text, from 1, and the server's note about it:
            subwords that were not read, and unknown language labels. By default, it
            warns.
    """

    def __init__(
        self,
        server: Server | Transport,
        batch_size: int = 32,
        concurrency: int = 4,
        note: Callable[[int, str], object] = _warn,
    ) -> None:
        self._transport = server if isinstance(server, Transport) else connect(server)
        self._batch_size = batch_size
        self._concurrency = concurrency
        self._note = note

    def __exit__(self, *_: object) -> None:
        """Closes the connections."""
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._transport.close()

    def translate(
        self, lines: Iterable[str], split_sentences: bool = False
    ) -> Iterator[ServedTranslation]:
        """Yields the translation of each line, with a few batches in memory.

        Args:
            lines: Sentences, or texts of several lines or, if `split_sentences` is set,
                of several sentences in a line.
            split_sentences: Whether to translate each sentence of a line separately.

        Raises:
            UserError: The server is not available, or rejects a request.
        """
        outputs = ("translations", "scores")
        signature = "split_sentences" if split_sentences else "serving_default"
        lines = [lines] if isinstance(lines, str) else lines
        for row in self._predict(signature, ("text",), outputs, zip(lines)):
            yield ServedTranslation(*row)

    def nbest(self, lines: Iterable[str]) -> Iterator[list[ServedTranslation]]:
        """Yields the n-best list of each line, best first.

        Raises:
            UserError: As in `translate`.
        """
        outputs = ("translations", "scores")
        lines = [lines] if isinstance(lines, str) else lines
        for texts, scores in self._predict("nbest", ("text",), outputs, zip(lines)):
            yield [
                ServedTranslation(text, score)
                for text, score in zip(texts, scores, strict=True)
                if score > _NO_HYPOTHESIS
            ]

    def score(self, pairs: Iterable[tuple[str, str]]) -> Iterator[float]:
        """Yields the log probability, in nats, of each translation given its sentence.

        Args:
            pairs: Sentences and their translations.

        Raises:
            UserError: As in `translate`.
        """
        inputs, outputs = ("text", "translation"), ("log_probability",)
        for (log_probability,) in self._predict("score", inputs, outputs, pairs):
            yield log_probability

    def _predict(
        self,
        signature: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        items: Iterable[tuple[str, ...]],
    ) -> Iterator[tuple[Any, ...]]:
        """Yields the outputs of a signature for each item, in order.

        Args:
            signature: Name of the signature.
            inputs: Names of the inputs.
            outputs: Names of the outputs.
            items: For each item one text per input.
        """

        def predict(batch: list[tuple[str, ...]]) -> list[tuple[Any, ...]]:
            columns = map(list, zip(*batch, strict=True))
            texts = dict(zip(inputs, columns, strict=True))
            answer = self._transport.predict(signature, texts, outputs)
            names = (NOTES, *outputs)
            return list(zip(*(answer[name] for name in names), strict=True))

        done = 0

        def read(results: list[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
            nonlocal done
            for note, *values in results:
                done += 1
                if note:
                    self._note(done, note)
                yield tuple(values)

        items = iter(items)
        pending: deque[Future[list[tuple[Any, ...]]]] = deque()
        pool = ThreadPoolExecutor(self._concurrency)
        try:
            while batch := list(islice(items, self._batch_size)):
                pending.append(pool.submit(predict, batch))
                # The queue is longer than the number of threads, so that no thread is
                # idle. With one thread each batch is yielded before the next is read.
                if len(pending) == 2 * self._concurrency - 1:
                    yield from read(pending.popleft().result())
            while pending:
                yield from read(pending.popleft().result())
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


# The scores of missing hypotheses are lower than this (`TextSignatures.nbest`).
_NO_HYPOTHESIS = -1e6
