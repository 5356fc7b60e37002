"""One model behind both protocols: requests checked, batched, run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import tensorflow as tf

from serving_harness.batching import Batcher, BatchingParameters
from serving_harness.graph import Arrays, GraphModel, Signature
from serving_harness.status import Code, StatusError

DEFAULT_SIGNATURE = "serving_default"


class Service:
    """A served model.

    Args:
        export_dir: the folder of its versions; the newest is loaded.
        name: the model's.
        batching: how requests are merged; None runs each alone.
        threads: as `GraphModel` takes them.
    """

    def __init__(
        self,
        export_dir: Path,
        name: str,
        batching: BatchingParameters | None = None,
        threads: int | None = None,
    ) -> None:
        self.name = name
        self.model = GraphModel(export_dir, threads)
        self.batcher = Batcher(self._run, batching) if batching else None

    def close(self) -> None:
        """Waits for the requests under way."""
        if self.batcher is not None:
            self.batcher.close()
        self.model.close()

    def check_model(self, name: str, version: int | None) -> None:
        """Refuses other models and versions."""
        if name != self.name or version not in (None, self.model.version):
            which = (
                f"Latest({name})" if version is None else f"Specific({name}, {version})"
            )
            raise StatusError(
                Code.NOT_FOUND, f"Servable not found for request: {which}"
            )

    def signature(self, name: str) -> Signature:
        """Finds a signature; none is the default one."""
        found = self.model.signatures.get(name or DEFAULT_SIGNATURE)
        if found is None:
            raise StatusError(
                Code.FAILED_PRECONDITION, f'Serving signature key "{name}" not found.'
            )
        return found

    def predict(self, signature: str, inputs: Arrays) -> dict[str, np.ndarray]:
        """Answers a request.

        Args:
            signature: its name; none is the default one.
            inputs: an array for each input.

        Raises:
            StatusError: it is refused, or fails.
        """
        wanted = self.signature(signature).inputs
        if inputs.keys() != wanted.keys():
            raise StatusError(
                Code.INVALID_ARGUMENT,
                "input size does not match signature: "
                f"{len(inputs)}!={len(wanted)}; missing but required: "
                f"{sorted(wanted.keys() - inputs.keys())}, extra: "
                f"{sorted(inputs.keys() - wanted.keys())}",
            )
        run: Callable[[str, Arrays], dict[str, np.ndarray]]
        run = self._run if self.batcher is None else self.batcher
        return run(signature or DEFAULT_SIGNATURE, inputs)

    def _run(self, signature: str, inputs: Arrays) -> dict[str, np.ndarray]:
        """Runs a batch in the session."""
        try:
            return self.model.run(signature, inputs)
        except tf.errors.OpError as error:
            known = error.error_code in set(Code)
            code = Code(error.error_code) if known else Code.INTERNAL
            raise StatusError(code, error.message) from None
        except ValueError as error:  # Python's check of a placeholder's shape.
            raise StatusError(Code.INVALID_ARGUMENT, str(error)) from None
