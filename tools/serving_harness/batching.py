"""Requests merged into batches by TensorFlow Serving's rules."""

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

from serving_harness.status import Code, StatusError

Arrays = Mapping[str, np.ndarray]
Run = Callable[[str, Arrays], dict[str, np.ndarray]]


@dataclass(frozen=True)
class BatchingParameters:
    """The fields of the server's ``--batching_parameters_file``.

    Attributes:
        max_batch_size: rows of a batch at most, and of a request.
        batch_timeout_micros: how long an open batch waits for more.
        max_enqueued_batches: batches that wait, at most, for each signature.
        num_batch_threads: batches that run at the same time.
        allowed_batch_sizes: ascending; a batch is filled up to the next. The last
            is max_batch_size. None allows any.
        pad_variable_length_inputs: pad the other axes instead of refusing.
    """

    max_batch_size: int = 1000
    batch_timeout_micros: int = 0
    max_enqueued_batches: int = 10
    num_batch_threads: int = 2
    allowed_batch_sizes: tuple[int, ...] = ()
    pad_variable_length_inputs: bool = False

    @classmethod
    def read(cls, path: Path, **changes: int) -> BatchingParameters:
        """Reads a parameters file, a text protocol buffer, and applies changes."""
        text = re.sub("#.*", "", path.read_text(encoding="utf-8"))
        numbers = re.findall(r"(\w+) *: *(\d+)|(\w+) *\{ *value *: *(\d+) *\}", text)
        found: dict[str, object] = {}
        sizes = []
        for plain, plain_value, wrapped, value in numbers:
            if plain == "allowed_batch_sizes":
                sizes.append(int(plain_value))
            elif wrapped:
                found[wrapped] = int(value)
        pads = re.search("pad_variable_length_inputs *: *true", text) is not None
        found["pad_variable_length_inputs"] = pads
        return cls(**found | {"allowed_batch_sizes": tuple(sizes)} | changes)  # type: ignore[arg-type]


@dataclass
class _Task:
    """A request: its tensors, (size, ...), and what becomes of it."""

    inputs: Arrays
    size: int
    answer: Future[dict[str, np.ndarray]] = field(default_factory=Future)


@dataclass
class _Batch:
    """Requests that run together; `opened` is when the first came, seconds."""

    signature: str
    opened: float
    tasks: list[_Task] = field(default_factory=list)
    closed: bool = False

    @property
    def size(self) -> int:
        """Rows of all."""
        return sum(task.size for task in self.tasks)


class Batcher:
    """Merges the requests of many threads; `run` runs one merged batch."""

    def __init__(self, run: Run, parameters: BatchingParameters) -> None:
        self._run = run
        self._parameters = parameters
        self._queues: dict[str, deque[_Batch]] = {}
        self._changed = threading.Condition()
        self._stopping = False
        self.sizes: list[int] = []
        """Requests in each batch that ran, for tests that want to see some merged."""
        self._threads = [
            threading.Thread(target=self._work, daemon=True)
            for _ in range(parameters.num_batch_threads)
        ]
        for thread in self._threads:
            thread.start()

    def __call__(self, signature: str, inputs: Arrays) -> dict[str, np.ndarray]:
        """Answers one request, in whatever batch it runs.

        Raises StatusError if it is refused or the queue is full; what a batch fails
        with, all its requests fail with.
        """
        task = _Task(inputs, _rows(inputs))
        if task.size > self._parameters.max_batch_size:
            raise StatusError(
                Code.INVALID_ARGUMENT,
                f"Task size {task.size} is larger than maximum input batch size "
                f"{self._parameters.max_batch_size}",
            )
        with self._changed:
            self._enqueue(signature, task)
            self._changed.notify_all()
        return task.answer.result()

    def close(self) -> None:
        """Ends the threads when they have done what waits."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _enqueue(self, signature: str, task: _Task) -> None:
        """Puts a request into the open batch, or opens another."""
        queue = self._queues.setdefault(signature, deque())
        most = self._parameters.max_batch_size
        if queue and not queue[-1].closed and queue[-1].size + task.size <= most:
            batch = queue[-1]
        else:
            if len(queue) >= self._parameters.max_enqueued_batches:
                raise StatusError(
                    Code.UNAVAILABLE,
                    "The batch scheduling queue to which this task was submitted is "
                    f"full; currently {len(queue)} batches enqueued and "
                    f"max_enqueued_batches is {self._parameters.max_enqueued_batches}",
                )
            if queue:
                queue[-1].closed = True
            batch = _Batch(signature, time.monotonic())
            queue.append(batch)
        batch.tasks.append(task)
        batch.closed = batch.size == most

    def _work(self) -> None:
        """Runs one batch after the other."""
        while True:
            with self._changed:
                while (batch := self._next()) is None:
                    if self._stopping:
                        return
                    self._changed.wait(self._until_a_timeout())
            self._process(batch)

    def _next(self) -> _Batch | None:
        """Takes the batch that has waited longest of those that may run."""
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

    def _until_a_timeout(self) -> float | None:
        """Returns the seconds until an open batch may run; None: there is none."""
        timeout = self._parameters.batch_timeout_micros / 1e6
        times = [queue[0].opened for queue in self._queues.values() if queue]
        return max(min(times) + timeout - time.monotonic(), 0) if times else None

    def _process(self, batch: _Batch) -> None:
        """Runs a batch and gives each request its part."""
        self.sizes.append(len(batch.tasks))
        try:
            rows = padded_size(batch.size, self._parameters.allowed_batch_sizes)
            merged = merge(
                [task.inputs for task in batch.tasks],
                rows,
                self._parameters.pad_variable_length_inputs,
            )
            found = self._run(batch.signature, merged)
            parts = split(found, [task.size for task in batch.tasks], rows)
        except Exception as error:
            for task in batch.tasks:
                task.answer.set_exception(error)
        else:
            for task, part in zip(batch.tasks, parts, strict=True):
                task.answer.set_result(part)


def padded_size(size: int, allowed: Sequence[int]) -> int:
    """Returns the least allowed size that is large enough, or the size itself."""
    return next((other for other in allowed if other >= size), size)


def merge(requests: Sequence[Arrays], rows: int, pad: bool) -> dict[str, np.ndarray]:
    """Joins requests, tensors (size, ...) under the same names, along axis 0.

    Missing ones of the batch's `rows` are the first row of the last request; `pad`
    makes the other axes equal, with each tensor's own first element. Raises StatusError
    if the shapes differ, or an empty tensor would have to be padded.
    """
    merged = {}
    for name in requests[0]:
        tensors = [request[name] for request in requests]
        if pad:
            shape = np.max([tensor.shape for tensor in tensors], axis=0)
            tensors = [_padded(tensor, shape[1:]) for tensor in tensors]
        elif len({tensor.shape[1:] for tensor in tensors}) > 1:
            raise StatusError(
                Code.FAILED_PRECONDITION,
                f"Tensors with name '{name}' from different tasks have different "
                "shapes and padding is turned off.",
            )
        missing = rows - sum(len(tensor) for tensor in tensors)
        tensors += [tensors[-1][:1]] * missing
        merged[name] = np.concatenate(tensors)
    return merged


def split(
    outputs: Arrays, sizes: Sequence[int], rows: int
) -> list[dict[str, np.ndarray]]:
    """Cuts a batch's outputs (rows, ...) into its requests; drops rows beyond `sizes`.

    Raises StatusError if an output's axis 0 is not the batch.
    """
    for value in outputs.values():
        if value.ndim == 0:
            raise StatusError(
                Code.FAILED_PRECONDITION, "Batched output tensor has 0 dimensions"
            )
        if len(value) != rows:
            raise StatusError(
                Code.FAILED_PRECONDITION,
                "Batched output tensor's 0th dimension does not equal the sum of the "
                "0th dimension sizes of the input tensors",
            )
    ends = np.cumsum(sizes)
    return [
        {name: value[end - size : end] for name, value in outputs.items()}
        for size, end in zip(sizes, ends, strict=True)
    ]


def _padded(tensor: np.ndarray, shape: np.ndarray) -> np.ndarray:
    """Pads all axes but the first with the tensor's first element."""
    widths = [(0, 0)]
    widths += [
        (0, int(wanted) - size)
        for wanted, size in zip(shape, tensor.shape[1:], strict=True)
    ]
    if not any(after for _, after in widths):
        return tensor
    if not tensor.size:
        raise StatusError(
            Code.INVALID_ARGUMENT, "Got empty tensor in batch of non-empty tensors."
        )
    return np.pad(tensor, widths, constant_values=tensor.flat[0])


def _rows(inputs: Arrays) -> int:
    """Returns the rows of a request; StatusError if its tensors have different ones."""
    if any(tensor.ndim == 0 for tensor in inputs.values()):
        raise StatusError(
            Code.INVALID_ARGUMENT,
            "Batching Run() input tensors must have at least one dimension",
        )
    sizes = {len(tensor) for tensor in inputs.values()}
    if len(sizes) != 1:
        raise StatusError(
            Code.INVALID_ARGUMENT,
            "Batching Run() input tensors must have equal 0th-dimension size",
        )
    return sizes.pop()
