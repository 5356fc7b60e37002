"""Model of the test server: a loaded graph and its session."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from serving_harness.batching import Arrays, Batcher, BatchingParameters
from serving_harness.status import Code, StatusError, failed, invalid

DEFAULT_SIGNATURE = "serving_default"


class Signature(NamedTuple):
    """Signature of the model: TensorInfo messages of inputs and outputs by name."""

    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]


class Service:
    """The newest version of an export, loaded as TensorFlow Serving loads it.

    Args:
        export_dir: Folder of the versions.
        name: Name of the model in requests.
        batching: Batching parameters; None runs each request separately.
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
            name: Signature(dict(each.inputs), dict(each.outputs))
            for name, each in meta.signature_def.items()
            if not name.startswith("__")
        }
        self.batcher = Batcher(self._run, batching) if batching else None

    def close(self) -> None:
        """Waits for running requests and closes the session."""
        if self.batcher is not None:
            self.batcher.close()
        self._session.close()

    def check_model(self, name: str, version: int | None) -> None:
        """Raises StatusError for another model or version."""
        if name != self.name or version not in (None, self.version):
            which = f"Specific({name}, {version})" if version else f"Latest({name})"
            missing = f"Servable not found for request: {which}"
            raise StatusError(Code.NOT_FOUND, missing)

    def signature(self, name: str) -> Signature:
        """Returns a signature; an empty name selects the default one.

        Raises StatusError if the signature does not exist.
        """
        signature = self._signatures.get(name or DEFAULT_SIGNATURE)
        if signature is None:
            raise failed(f'Serving signature key "{name}" not found.')
        return signature

    def predict(self, signature: str, inputs: Arrays) -> dict[str, np.ndarray]:
        """Runs a request and returns its outputs.

        Args:
            signature: Name of the signature; empty for the default one.
            inputs: Array of each input; strings are arrays of `bytes` objects.

        Raises:
            StatusError: The request is rejected or fails.
        """
        expected = self.signature(signature).inputs
        if inputs.keys() != expected.keys():
            # The client finds the missing input in this text of TensorFlow Serving.
            raise invalid(
                "input size does not match signature: "
                f"{len(inputs)}!={len(expected)}; missing but required: "
                f"{sorted(expected.keys() - inputs.keys())}, extra: "
                f"{sorted(inputs.keys() - expected.keys())}",
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
            outputs: dict[str, np.ndarray] = self._session.run(fetch, feed)
        except tf.errors.OpError as error:
            is_code = error.error_code in set(Code)
            code = Code(error.error_code) if is_code else Code.INTERNAL
            raise StatusError(code, error.message) from None
        except ValueError as error:  # Raised for a wrong shape of a placeholder.
            raise invalid(str(error)) from None
        return outputs


def load_text_ops() -> None:
    """Loads the op libraries of tensorflow_text, which TensorFlow Serving links.

    Does not import the Python package.
    """
    spec = importlib.util.find_spec("tensorflow_text")
    assert spec is not None and spec.origin is not None
    for library in sorted(Path(spec.origin).parent.glob("python/ops/*.so")):
        tf.load_op_library(str(library))
