"""Asks a server for translations, lists and scores; any number of them, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any, NamedTuple

from t2t_repro.serving.transport import Server, Transport, connect


class ServedTranslation(NamedTuple):
    """A translation from a server, and its log probability over the length penalty."""

    text: str
    score: float


class Client:
    """Asks one server, in batches, some of them at the same time.

    It is a context, which closes the connections:

        with Client(Server("localhost", 8500, "mymodel")) as client:
            for translation in client.translate(lines):
                ...

    Args:
        server: who is asked, or a transport to it.
        batch_size: sentences in a request; the server's own limit is 64 in the files
            that the export writes.
        concurrency: requests at the same time.
    """

    def __init__(
        self, server: Server | Transport, batch_size: int = 32, concurrency: int = 4
    ) -> None:
        self._transport = server if isinstance(server, Transport) else connect(server)
        self._batch_size = batch_size
        self._concurrency = concurrency

    def __enter__(self) -> Client:
        """Returns itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the connections."""
        self.close()

    def close(self) -> None:
        """Ends the connections."""
        self._transport.close()

    def translate(self, lines: Iterable[str]) -> Iterator[ServedTranslation]:
        """Yields the translation of each line, a few batches in memory at a time.

        Raises:
            UserError: the server is not available, or refuses a request.
        """
        outputs = ("translations", "scores")
        for found in self._ask("serving_default", ("text",), outputs, zip(lines)):
            yield ServedTranslation(*found)

    def nbest(self, lines: Iterable[str]) -> Iterator[list[ServedTranslation]]:
        """Yields for each line the translations that were found, best first.

        Raises:
            UserError: as `translate`.
        """
        outputs = ("translations", "scores")
        for texts, scores in self._ask("nbest", ("text",), outputs, zip(lines)):
            yield [
                ServedTranslation(text, score)
                for text, score in zip(texts, scores, strict=True)
                if score > _NO_HYPOTHESIS
            ]

    def score(self, pairs: Iterable[tuple[str, str]]) -> Iterator[float]:
        """Yields the log probability, nats, of each given translation of a sentence.

        Raises:
            UserError: as `translate`.
        """
        inputs, outputs = ("text", "translation"), ("log_probability",)
        for (log_probability,) in self._ask("score", inputs, outputs, pairs):
            yield log_probability

    def _ask(
        self,
        signature: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        items: Iterable[tuple[str, ...]],
    ) -> Iterator[tuple[Any, ...]]:
        """Yields the outputs of a signature for each item, in the items' order.

        An item has a text for each of the named `inputs`. Several batches are sent at
        the same time.
        """

        def predict(batch: list[tuple[str, ...]]) -> list[tuple[Any, ...]]:
            columns = map(list, zip(*batch, strict=True))
            texts = dict(zip(inputs, columns, strict=True))
            answer = self._transport.predict(signature, texts, outputs)
            return list(zip(*(answer[name] for name in outputs), strict=True))

        reading = iter(items)
        waiting: deque[Future[list[tuple[Any, ...]]]] = deque()
        pool = ThreadPoolExecutor(self._concurrency)
        try:
            while batch := list(islice(reading, self._batch_size)):
                waiting.append(pool.submit(predict, batch))
                # More than are asked at once, so that no thread is idle; a single one
                # is answered before the next item is read.
                if len(waiting) == 2 * self._concurrency - 1:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


# A place that no hypothesis fills has a lower one (`SignatureFunctions.nbest`).
_NO_HYPOTHESIS = -1e6
