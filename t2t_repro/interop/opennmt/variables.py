"""The variables of an OpenNMT-tf model, by the paths of its objects.

A checkpoint (tf.train.Checkpoint) and a SavedModel both hold a graph of objects in
which the same names lead to a variable, though a SavedModel keeps it under a number.
Where two paths lead to one variable, its table is shared.
"""

from pathlib import Path

import numpy as np

from t2t_repro.interop.tensor2tensor import checkpoint as t2t_checkpoint
from t2t_repro.runs.checkpoints import TensorFile
from t2t_repro.system.errors import UserError

_OBJECTS = "_CHECKPOINTABLE_OBJECT_GRAPH"
_LISTS = ("variables", "trainable_variables", "keras_api")
SAVED_MODEL = "saved_model.pb"


class Variables:
    """Reads variables, each of which is to be taken.

    Args:
        path: a checkpoint's prefix, one of its files or its folder, or the folder of a
            SavedModel.

    Raises:
        UserError: there is none, or several, or it is damaged, or no checkpoint of
            objects, as OpenNMT-tf's from version 2 on.
    """

    def __init__(self, path: Path) -> None:
        from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
        from tensorflow.core.protobuf import trackable_object_graph_pb2

        self.is_saved_model = (path / SAVED_MODEL).is_file()
        if self.is_saved_model:
            self.prefix = path / "variables" / "variables"
        else:
            self.prefix = t2t_checkpoint.find(path)
        self._file = TensorFile(self.prefix)
        self._shapes = self._file.shapes()
        if _OBJECTS not in self._shapes:
            raise UserError(
                f"{self.prefix} is no checkpoint of OpenNMT-tf 2; let OpenNMT-tf 2 "
                "read one of version 1 first, which it saves anew"
            )
        graph = trackable_object_graph_pb2.TrackableObjectGraph
        try:
            self._nodes = graph.FromString(self._file.read(_OBJECTS).item()).nodes
        except DecodeError:
            raise UserError(f"{self.prefix}: {_OBJECTS} is damaged") from None
        self._root = 0 if self.is_saved_model else self._child(0, "model")
        self._left = self._of_model()
        self.taken = 0

    def key(self, path: str) -> str | None:
        """Returns what identifies the variable at a path, None where there is none."""
        node: int | None = self._root
        for name in path.split("/"):
            node = None if node is None else self._child(node, name)
        if node is None:
            return None
        keys = [each.checkpoint_key for each in self._nodes[node].attributes]
        return keys[0] if keys and keys[0] in self._shapes else None

    def shape(self, path: str) -> tuple[int, ...] | None:
        """Returns the shape of the variable at a path, None where there is none."""
        key = self.key(path)
        return None if key is None else self._shapes[key]

    def take(self, path: str, *shape: int | None) -> np.ndarray:
        """Returns a variable as float32; it must have a shape (None: any size).

        UserError: it is missing, damaged, or of another shape, or not all of its
        numbers are finite.
        """
        key = self.key(path)
        if key is None:
            raise UserError(
                f"{self.prefix} has no {path}; it is damaged, or not of the model that "
                "its description tells of"
            )
        self.taken += self._left.pop(key, None) is not None
        found = self._shapes[key]
        if len(found) != len(shape) or any(
            wanted not in (None, size)
            for wanted, size in zip(shape, found, strict=True)
        ):
            wanted = tuple("any" if size is None else size for size in shape)
            raise UserError(
                f"{self.prefix}: {path} has the shape {found}, not {wanted}; the files "
                "are of different models"
            )
        value = self._file.read(key)
        if value.dtype.kind != "f" and value.dtype.name != "bfloat16":
            raise UserError(f"{self.prefix}: {path} holds {value.dtype}, not floats")
        value = value.astype(np.float32)
        if not np.isfinite(value).all():
            raise UserError(f"{self.prefix}: {path} holds what is no number")
        return value

    def refuse_left(self) -> None:
        """Raises UserError that names a variable of the model that was not taken."""
        if self._left:
            raise UserError(
                f"{self.prefix}: {sorted(self._left.values())[0]} is no part of a "
                "Transformer that is supported here"
            )

    def unused(self) -> dict[str, list[str]]:
        """Tells what the file has besides the model, by kind."""
        slots = sum("/.OPTIMIZER_SLOT/" in name for name in self._shapes)
        return {"optimizer": [f"{slots:,} moments"] if slots else []}

    def _child(self, node: int, name: str) -> int | None:
        for child in self._nodes[node].children:
            if child.local_name == name:
                return child.node_id
        return None

    def _of_model(self) -> dict[str, str]:
        """Returns key -> path of every variable of the model."""
        if self._root is None:
            raise UserError(
                f"{self.prefix} holds no model of OpenNMT-tf, or one of another program"
            )
        found: dict[str, str] = {}
        seen: set[int] = set()

        def visit(node: int, path: str) -> None:
            if node in seen:
                return
            seen.add(node)
            for each in self._nodes[node].attributes:
                if each.checkpoint_key in self._shapes:
                    found[each.checkpoint_key] = path.lstrip("/")
            # Keras' lists have every variable, too, without a name that tells.
            children = self._nodes[node].children
            for child in sorted(children, key=lambda c: c.local_name in _LISTS):
                visit(child.node_id, f"{path}/{child.local_name}")

        visit(self._root, "")
        return found
