"""One model behind both protocols, as a server holds it: a graph and a session."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from serving_harness.batching import Arrays, Batcher, BatchingParameters
from serving_harness.status import Code, StatusError

DEFAULT_SIGNATURE = "serving_default"


class Signature(NamedTuple):
    """One function of the model: TensorInfo messages by name."""

    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]


class Service:
    """The newest version below a folder, loaded as TensorFlow Serving loads it.

    `batching` says how requests are merged; None runs each alone.
    """

    def __init__(
        self, export_dir: Path, name: str, batching: BatchingParameters | None = None
    ) -> None:
        self.name = name
        load_text_ops()
        names = (path.name for path in export_dir.iterdir() if path.is_dir())
        self.version = max(int(name) for name in names if name.isdecimal())
        self._session = tf.compat.v1.Session(graph=tf.Graph())
        with self._session.graph.as_default():
            meta = tf.compat.v1.saved_model.load(
                self._session, ["serve"], str(export_dir / str(self.version))
            )
        self._signatures = {
            name: Signature(dict(found.inputs), dict(found.outputs))
            for name, found in meta.signature_def.items()
            if not name.startswith("__")
        }
        self.batcher = Batcher(self._run, batching) if batching else None

    def close(self) -> None:
        """Waits for the requests under way and gives the memory back."""
        if self.batcher is not None:
            self.batcher.close()
        self._session.close()

    def check_model(self, name: str, version: int | None) -> None:
        """Refuses other models and versions."""
        if name != self.name or version not in (None, self.version):
            which = (
                f"Latest({name})" if version is None else f"Specific({name}, {version})"
            )
            raise StatusError(
                Code.NOT_FOUND, f"Servable not found for request: {which}"
            )

    def signature(self, name: str) -> Signature:
        """Finds a signature; none is the default one."""
        found = self._signatures.get(name or DEFAULT_SIGNATURE)
        if found is None:
            raise StatusError(
                Code.FAILED_PRECONDITION, f'Serving signature key "{name}" not found.'
            )
        return found

    def predict(self, signature: str, inputs: Arrays) -> dict[str, np.ndarray]:
        """Answers a request: an array for each input, strings as objects of bytes.

        Without a name it asks the default signature. Raises StatusError if it is
        refused, or fails.
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

    def _run(self, name: str, inputs: Arrays) -> dict[str, np.ndarray]:
        """Runs a batch in the session."""
        signature = self._signatures[name]
        feed = {signature.inputs[key].name: value for key, value in inputs.items()}
        fetch = {key: info.name for key, info in signature.outputs.items()}
        try:
            found: dict[str, np.ndarray] = self._session.run(fetch, feed)
        except tf.errors.OpError as error:
            known = error.error_code in set(Code)
            code = Code(error.error_code) if known else Code.INTERNAL
            raise StatusError(code, error.message) from None
        except ValueError as error:  # Python's check of a placeholder's shape.
            raise StatusError(Code.INVALID_ARGUMENT, str(error)) from None
        return found


def load_text_ops() -> None:
    """Registers tensorflow_text's operations alone; the stock server links them in."""
    spec = importlib.util.find_spec("tensorflow_text")
    assert spec is not None and spec.origin is not None
    for library in sorted(Path(spec.origin).parent.glob("python/ops/*.so")):
        tf.load_op_library(str(library))
