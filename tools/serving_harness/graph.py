"""A SavedModel as a server holds it: a graph and a session, no Python objects."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Signature:
    """One function of the model.

    Attributes:
        inputs: TensorInfo messages by name.
        outputs: TensorInfo messages by name.
    """

    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]


class GraphModel:
    """The newest version below a folder, loaded as TensorFlow Serving loads it.

    Args:
        export_dir: the folder of all versions.
        threads: cores for one operation, and operations at a time; None is
            TensorFlow's own choice.
    """

    def __init__(self, export_dir: Path, threads: int | None = None) -> None:
        load_text_ops()
        names = (path.name for path in export_dir.iterdir() if path.is_dir())
        self.version = max(int(name) for name in names if name.isdecimal())
        config = tf.compat.v1.ConfigProto()
        if threads is not None:
            config.intra_op_parallelism_threads = threads
            config.inter_op_parallelism_threads = threads
        self._session = tf.compat.v1.Session(graph=tf.Graph(), config=config)
        with self._session.graph.as_default():
            meta = tf.compat.v1.saved_model.load(
                self._session, ["serve"], str(export_dir / str(self.version))
            )
        self.signatures = {
            name: Signature(dict(found.inputs), dict(found.outputs))
            for name, found in meta.signature_def.items()
            if not name.startswith("__")
        }

    def run(self, name: str, inputs: Arrays) -> dict[str, np.ndarray]:
        """Runs a signature.

        Args:
            name: the signature's.
            inputs: an array for each input, strings as objects of bytes.

        Returns:
            An array for each output.

        Raises:
            tf.errors.OpError: the graph refuses the inputs, or fails.
            ValueError: an input has a shape that the graph does not take.
        """
        signature = self.signatures[name]
        feed = {signature.inputs[key].name: value for key, value in inputs.items()}
        fetch = {key: info.name for key, info in signature.outputs.items()}
        found: dict[str, np.ndarray] = self._session.run(fetch, feed)
        return found

    def close(self) -> None:
        """Gives the memory back."""
        self._session.close()


def load_text_ops() -> None:
    """Registers tensorflow_text's operations, without its Python code.

    The stock server has them linked in.
    """
    spec = importlib.util.find_spec("tensorflow_text")
    assert spec is not None and spec.origin is not None
    for library in sorted(Path(spec.origin).parent.glob("python/ops/*.so")):
        tf.load_op_library(str(library))
