"""Merges requests into batches by TensorFlow Serving's rules."""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from t2t_repro.serving.server.status import Code, StatusError, failed, invalid

Arrays = Mapping[str, np.ndarray]
Run = Callable[[str, Arrays], dict[str, np.ndarray]]


@dataclass(frozen=True)
class BatchingParameters:
    """Fields of the server's ``--batching_parameters_file``.

    Attributes:
        max_batch_size: Maximum number of rows of a batch or request.
        batch_timeout_micros: Time that an open batch waits for requests, in
            microseconds.
        max_enqueued_batches: Maximum number of waiting batches per signature.
        num_batch_threads: Number of batches that run concurrently.
        allowed_batch_sizes: Ascending batch sizes; a batch is filled up to the next
            one. The last is `max_batch_size`. Empty: all sizes are allowed.
        pad_variable_length_inputs: Whether to pad the other axes instead of rejecting
            requests of different shapes.
    """

    max_batch_size: int = 1000
    batch_timeout_micros: int = 0
    max_enqueued_batches: int = 10
    num_batch_threads: int = 2
    allowed_batch_sizes: tuple[int, ...] = ()
    pad_variable_length_inputs: bool = False

    @classmethod
    def read(cls, path: Path, **changes: int) -> BatchingParameters:
        """Reads a parameters file (a text protocol buffer) and applies `changes`."""
        text = re.sub("#.*", "", path.read_text(encoding="utf-8"))
        numbers = re.findall(r"(\w+) *: *(\d+)|(\w+) *\{ *value *: *(\d+) *\}", text)
        fields: dict[str, object] = {}
        sizes = []
        for plain, plain_value, wrapped, value in numbers:
            if plain == "allowed_batch_sizes":
                sizes.append(int(plain_value))
            elif wrapped:
                fields[wrapped] = int(value)
        pads = re.search("pad_variable_length_inputs *: *true", text) is not None
        fields["pad_variable_length_inputs"] = pads
        return cls(**fields | {"allowed_batch_sizes": tuple(sizes)} | changes)  # type: ignore[arg-type]


@dataclass
class _Task:
    """A request: its tensors (size, ...), its number of rows and its future answer."""

    inputs: Arrays
    size: int
    answer: Future[dict[str, np.ndarray]] = field(default_factory=Future)


@dataclass
class _Batch:
    """Requests that run together.

    Attributes:
        signature: Signature of all requests.
        opened: Arrival time of the first request in seconds.
        tasks: Requests in order of arrival.
        closed: Whether the batch accepts no more requests.
    """

    signature: str
    opened: float
    tasks: list[_Task] = field(default_factory=list)
    closed: bool = False

    @property
    def size(self) -> int:
        """Total number of rows."""
        return sum(task.size for task in self.tasks)


class Batcher:
    """Merges requests of concurrent threads into batches.

    Args:
        run: Function that runs a merged batch: signature and inputs to outputs.
        parameters: Batching parameters.
    """

    def __init__(self, run: Run, parameters: BatchingParameters) -> None:
        self._run = run
        self._parameters = parameters
        self._queues: dict[str, deque[_Batch]] = {}
        self._changed = threading.Condition()
        self._stopping = False
        self.sizes: list[int] = []
        """Number of requests in each batch that ran, for tests of merging."""
        self._threads = [
            threading.Thread(target=self._work, daemon=True)
            for _ in range(parameters.num_batch_threads)
        ]
        for thread in self._threads:
            thread.start()

    def __call__(self, signature: str, inputs: Arrays) -> dict[str, np.ndarray]:
        """Runs a request as part of a batch and returns its outputs.

        Raises StatusError if the request is rejected or the queue is full. An error of
        a batch is raised for all its requests.
        """
        task = _Task(inputs, _rows(inputs))
        if task.size > self._parameters.max_batch_size:
            raise invalid(
                f"Task size {task.size} is larger than maximum input batch size "
                f"{self._parameters.max_batch_size}"
            )
        with self._changed:
            self._enqueue(signature, task)
            self._changed.notify_all()
        return task.answer.result()

    def close(self) -> None:
        """Stops the threads after they have run the waiting batches."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _enqueue(self, signature: str, task: _Task) -> None:
        """Adds a request to the open batch or opens a new one."""
        queue = self._queues.setdefault(signature, deque())
        limit = self._parameters.max_batch_size
        if queue and not queue[-1].closed and queue[-1].size + task.size <= limit:
            batch = queue[-1]
        else:
            if len(queue) >= self._parameters.max_enqueued_batches:
                full = f"the queue is full: {len(queue)} batches are waiting"
                raise StatusError(Code.UNAVAILABLE, full)
            if queue:
                queue[-1].closed = True
            batch = _Batch(signature, time.monotonic())
            queue.append(batch)
        batch.tasks.append(task)
        batch.closed = batch.size == limit

    def _work(self) -> None:
        """Runs batches until the batcher is closed; every worker thread calls this."""
        while True:
            with self._changed:
                while (batch := self._next()) is None:
                    if self._stopping:
                        return
                    self._changed.wait(self._remaining_seconds())
            self._process(batch)

    def _next(self) -> _Batch | None:
        """Removes and returns the oldest batch that is ready to run, if any."""
        timeout = self._parameters.batch_timeout_micros / 1e6
        now = time.monotonic()
        ready = [
            queue
            for queue in self._queues.values()
            if queue
            and (queue[0].closed or self._stopping or now >= queue[0].opened + timeout)
        ]
        if not ready:
            return None
        batch = min(ready, key=lambda queue: queue[0].opened).popleft()
        batch.closed = True
        return batch

    def _remaining_seconds(self) -> float | None:
        """Returns the seconds until the next timeout; None if no batch is waiting."""
        timeout = self._parameters.batch_timeout_micros / 1e6
        times = [queue[0].opened for queue in self._queues.values() if queue]
        return max(min(times) + timeout - time.monotonic(), 0) if times else None

    def _process(self, batch: _Batch) -> None:
        """Runs a batch and assigns the outputs to its requests."""
        self.sizes.append(len(batch.tasks))
        try:
            rows = padded_size(batch.size, self._parameters.allowed_batch_sizes)
            merged = merge(
                [task.inputs for task in batch.tasks],
                rows,
                self._parameters.pad_variable_length_inputs,
            )
            outputs = self._run(batch.signature, merged)
            parts = split(outputs, [task.size for task in batch.tasks], rows)
        except Exception as error:
            for task in batch.tasks:
                task.answer.set_exception(error)
        else:
            for task, part in zip(batch.tasks, parts, strict=True):
                task.answer.set_result(part)


def padded_size(size: int, allowed: Sequence[int]) -> int:
    """Returns the smallest allowed size of at least `size`, or else `size`."""
    return next((other for other in allowed if other >= size), size)


def merge(requests: Sequence[Arrays], rows: int, pad: bool) -> dict[str, np.ndarray]:
    """Concatenates the tensors (size, ...) of requests along axis 0.

    Args:
        requests: Requests with the same tensor names.
        rows: Number of rows of the batch. Copies of the first row of the last request
            fill up the rest.
        pad: Whether to pad the other axes with each tensor's first element.

    Raises:
        StatusError: Shapes differ without padding, or an empty tensor needs padding.
    """
    merged = {}
    for name in requests[0]:
        tensors = [request[name] for request in requests]
        if pad:
            shape = np.max([tensor.shape for tensor in tensors], axis=0)
            tensors = [_pad(tensor, shape[1:]) for tensor in tensors]
        elif len({tensor.shape[1:] for tensor in tensors}) > 1:
            raise failed(
                f"Tensors with name '{name}' from different tasks have different "
                "shapes and padding is turned off."
            )
        missing = rows - sum(len(tensor) for tensor in tensors)
        tensors += [tensors[-1][:1]] * missing
        merged[name] = np.concatenate(tensors)
    return merged


def split(
    outputs: Arrays, sizes: Sequence[int], rows: int
) -> list[dict[str, np.ndarray]]:
    """Splits a batch's outputs (rows, ...) by request and drops padding rows.

    Raises StatusError if axis 0 of an output does not have `rows` rows.
    """
    for value in outputs.values():
        if value.ndim == 0:
            raise failed("Batched output tensor has 0 dimensions")
        if len(value) != rows:
            raise failed(
                "Batched output tensor's 0th dimension does not equal the sum of the "
                "0th dimension sizes of the input tensors"
            )
    ends = np.cumsum(sizes)
    return [
        {name: value[end - size : end] for name, value in outputs.items()}
        for size, end in zip(sizes, ends, strict=True)
    ]


def _pad(tensor: np.ndarray, shape: np.ndarray) -> np.ndarray:
    """Pads all axes but the first with the tensor's first element."""
    missing = shape - tensor.shape[1:]
    if not missing.any():
        return tensor
    if not tensor.size:
        raise invalid("Got empty tensor in batch of non-empty tensors.")
    widths = [(0, 0), *((0, int(size)) for size in missing)]
    return np.pad(tensor, widths, constant_values=tensor.flat[0])


def _rows(inputs: Arrays) -> int:
    """Returns the number of rows of a request.

    Raises StatusError if its tensors have different numbers of rows.
    """
    if any(tensor.ndim == 0 for tensor in inputs.values()):
        raise invalid("Batching Run() input tensors must have at least one dimension")
    sizes = {len(tensor) for tensor in inputs.values()}
    if len(sizes) != 1:
        raise invalid("Batching Run() input tensors must have equal 0th-dimension size")
    return sizes.pop()
