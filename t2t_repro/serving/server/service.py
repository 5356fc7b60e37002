"""Served model: a loaded graph and its session."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from google.protobuf.json_format import MessageToDict

from t2t_repro.serving.server.batching import Arrays, Batcher, BatchingParameters
from t2t_repro.serving.server.status import Code, StatusError, failed, invalid
from t2t_repro.serving.versions import find_newest
from t2t_repro.system.errors import UserError

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

    Raises:
        UserError: The folder contains no SavedModel, or a damaged one.
    """

    def __init__(
        self, export_dir: Path, name: str, batching: BatchingParameters | None = None
    ) -> None:
        self.name = name
        folder = find_newest(export_dir)
        self.version = int(folder.name)
        load_text_ops()
        self._session = tf.compat.v1.Session(graph=tf.Graph())
        try:
            with self._session.graph.as_default():
                meta = tf.compat.v1.saved_model.load(
                    self._session, ["serve"], str(folder)
                )
        except (OSError, RuntimeError, ValueError, tf.errors.OpError) as error:
            reason = str(error).partition("\n")[0]
            raise UserError(f"{folder} cannot be loaded: {reason}") from None
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

    def status(self) -> dict[str, Any]:
        """Returns the status of the model, as a `GetModelStatusResponse`."""
        status = {"error_code": "OK", "error_message": ""}
        version = str(self.version)
        row = {"version": version, "state": "AVAILABLE", "status": status}
        return {"model_version_status": [row]}

    def metadata(self) -> dict[str, Any]:
        """Returns the signatures of the model, as a `GetModelMetadataResponse`."""
        signatures = {
            name: {
                "inputs": _describe(signature.inputs),
                "outputs": _describe(signature.outputs),
                "method_name": "tensorflow/serving/predict",
            }
            for name, signature in self._signatures.items()
        }
        version = str(self.version)
        return {
            "model_spec": {"name": self.name, "signature_name": "", "version": version},
            "metadata": {"signature_def": {"signature_def": signatures}},
        }

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


def _describe(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the TensorInfo messages of inputs or outputs as dictionaries."""
    return {
        name: MessageToDict(info, preserving_proto_field_name=True)
        for name, info in tensors.items()
    }


def load_text_ops() -> None:
    """Loads the op libraries of tensorflow_text, which TensorFlow Serving links.

    Does not import the Python package.
    """
    spec = importlib.util.find_spec("tensorflow_text")
    assert spec is not None and spec.origin is not None
    for library in sorted(Path(spec.origin).parent.glob("python/ops/*.so")):
        tf.load_op_library(str(library))
