"""The variables of a tf.train.Checkpoint or a SavedModel, by the paths of its objects.

Both hold a graph of objects in which the same names lead to a variable, though a
SavedModel keeps it under a number. Two paths may lead to one variable, such as a table
that two layers share.
"""

from pathlib import Path

from t2t_repro.interop.formats import tensor_bundle
from t2t_repro.interop.formats.array_store import ArrayStore
from t2t_repro.runs.checkpoints import TensorFile
from t2t_repro.system.errors import UserError

_OBJECTS = "_CHECKPOINTABLE_OBJECT_GRAPH"
_LISTS = ("variables", "trainable_variables", "keras_api")
SAVED_MODEL = "saved_model.pb"


class ObjectStore(ArrayStore):
    """The variables of a model; a name is the path of objects that leads to one.

    Attributes:
        is_saved_model: Whether they come from a SavedModel.
    """

    def __init__(self, path: Path) -> None:
        """Reads the graph of objects.

        Args:
            path: A checkpoint's prefix, one of its files or its folder, or the folder
                of a SavedModel.

        Raises:
            UserError: There is none, there are several, it is damaged, or it has no
                graph of objects, as OpenNMT-tf's checkpoints have from version 2 on.
        """
        from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
        from tensorflow.core.protobuf import trackable_object_graph_pb2

        self.is_saved_model = (path / SAVED_MODEL).is_file()
        if self.is_saved_model:
            prefix = path / "variables" / "variables"
        else:
            prefix = tensor_bundle.find(path)
        file = TensorFile(prefix)
        super().__init__(prefix, file.shapes(), file.read)
        if _OBJECTS not in self.shapes:
            raise UserError(
                f"{prefix} is no checkpoint of OpenNMT-tf 2; let OpenNMT-tf 2 "
                "read one of version 1 first, which it saves anew"
            )
        graph = trackable_object_graph_pb2.TrackableObjectGraph
        try:
            self._nodes = graph.FromString(self.read(_OBJECTS).item()).nodes
        except DecodeError:
            raise UserError(f"{prefix}: {_OBJECTS} is damaged") from None
        self._root = 0 if self.is_saved_model else self._child(0, "model")
        if self._root is None:
            raise UserError(
                f"{prefix} holds no model of OpenNMT-tf, or one of another program"
            )
        self.left = {}
        self._visit(self._root, "", set())

    def key(self, name: str) -> str | None:
        """Returns the key of the variable at a path, None if there is none."""
        node: int | None = self._root
        for part in name.split("/"):
            node = None if node is None else self._child(node, part)
        if node is None:
            return None
        keys = [each.checkpoint_key for each in self._nodes[node].attributes]
        return keys[0] if keys and keys[0] in self.shapes else None

    def moments(self) -> int:
        """Returns the number of the optimizer's arrays."""
        return sum("/.OPTIMIZER_SLOT/" in name for name in self.shapes)

    def _child(self, node: int, name: str) -> int | None:
        for child in self._nodes[node].children:
            if child.local_name == name:
                return child.node_id
        return None

    def _visit(self, node: int, path: str, seen: set[int]) -> None:
        """Notes the path of every variable below a node."""
        if node in seen:
            return
        seen.add(node)
        for each in self._nodes[node].attributes:
            if each.checkpoint_key in self.shapes:
                self.left[each.checkpoint_key] = path.lstrip("/")
        # Keras' lists hold every variable, too, but under numbers.
        children = self._nodes[node].children
        for child in sorted(children, key=lambda c: c.local_name in _LISTS):
            self._visit(child.node_id, f"{path}/{child.local_name}", seen)
