"""Asks a server for translations, lists and scores; any number of them, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

from t2t_repro.serving.transport import Server, Transport, connect

_Item = TypeVar("_Item")
_Found = TypeVar("_Found")


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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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

        def ask(texts: list[str]) -> list[ServedTranslation]:
            found = self._ask("serving_default", {"text": texts}, outputs)
            return list(map(ServedTranslation, *found))

        yield from self._in_order(ask, lines)

    def nbest(self, lines: Iterable[str]) -> Iterator[list[ServedTranslation]]:
        """Yields for each line the translations that were found, best first.

        Raises:
            UserError: as `translate`.
        """
        outputs = ("translations", "scores")

        def ask(texts: list[str]) -> list[list[ServedTranslation]]:
            found = self._ask("nbest", {"text": texts}, outputs)
            return [
                [
                    ServedTranslation(text, score)
                    for text, score in zip(*row, strict=True)
                    if score > _NO_HYPOTHESIS
                ]
                for row in zip(*found, strict=True)
            ]

        yield from self._in_order(ask, lines)

    def score(self, pairs: Iterable[tuple[str, str]]) -> Iterator[float]:
        """Yields the log probability, nats, of each given translation of a sentence.

        Raises:
            UserError: as `translate`.
        """

        def ask(pairs: list[tuple[str, str]]) -> list[float]:
            texts, translations = map(list, zip(*pairs, strict=True))
            inputs = {"text": texts, "translation": translations}
            (found,) = self._ask("score", inputs, ("log_probability",))
            return found

        yield from self._in_order(ask, pairs)

    def _ask(
        self, signature: str, inputs: dict[str, list[str]], outputs: Sequence[str]
    ) -> list[list[Any]]:
        """Returns the outputs in the order of their names."""
        answer = self._transport.predict(signature, inputs, outputs)
        return [answer[name] for name in outputs]

    def _in_order(
        self, ask: Callable[[list[_Item]], list[_Found]], items: Iterable[_Item]
    ) -> Iterator[_Found]:
        """Asks for batches, some at the same time, and yields in the items' order."""
        reading = iter(items)
        waiting: deque[Future[list[_Found]]] = deque()
        pool = ThreadPoolExecutor(self._concurrency)
        try:
            while batch := list(islice(reading, self._batch_size)):
                waiting.append(pool.submit(ask, batch))
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
