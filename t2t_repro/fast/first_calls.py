"""Optimization of a graph once, before parallel calls."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from t2t_repro.fast.malloc import release_freed_memory


class FirstCalls:
    """Calls traced functions without sentences, before parallel calls.

    TensorFlow optimizes a graph at its first call. Parallel first calls would each
    optimize it, which takes seconds of processor time. Optimizing the graph of a search
    also leaves 50 MB of freed memory, which glibc would keep during the search.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._called: set[Callable[..., Any]] = set()

    def __call__(
        self, function: Callable[..., Any], batch: Sequence[tf.Tensor], weights: Any
    ) -> None:
        """Calls a function, unless this object has called it before.

        Args:
            function: The traced function.
            batch: First arguments, with a row for each sentence; none is passed.
            weights: Nested structure of its other arguments.
        """
        with self._lock:
            if function not in self._called:
                function(*(rows[:0] for rows in batch), *tf.nest.flatten(weights))
                release_freed_memory()
                self._called.add(function)
