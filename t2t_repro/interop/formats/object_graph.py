"""Variables of a tf.train.Checkpoint or a SavedModel, found by their object paths.

Both contain a graph of objects, whose edges have attribute names. A variable has the
same path in both, although its key in the weight file differs. Two paths may lead to
the same variable, such as a table that two layers share.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any

from t2t_repro.interop.formats import tensor_bundle
from t2t_repro.interop.formats.array_store import ArrayStore
from t2t_repro.runs.tensor_file import TensorFile
from t2t_repro.system.errors import UserError

OBJECTS = "_CHECKPOINTABLE_OBJECT_GRAPH"
"""Key of the object graph in a checkpoint."""

_LISTS = ("variables", "trainable_variables", "keras_api")
SAVED_MODEL = "saved_model.pb"


class ObjectStore(ArrayStore):
    """Store of a model's variables, named by their object paths.

    Attributes:
        is_saved_model: Whether the variables come from a SavedModel.
    """

    def __init__(self, path: Path) -> None:
        """Opens a checkpoint or SavedModel and reads its object graph.

        Args:
            path: Prefix, file or folder of a checkpoint, or folder of a SavedModel.

        Raises:
            UserError: The checkpoint is missing, ambiguous or damaged, or was not
                written by OpenNMT-tf 2.
        """
        self.is_saved_model = (path / SAVED_MODEL).is_file()
        if self.is_saved_model:
            prefix = path / "variables" / "variables"
        else:
            prefix = tensor_bundle.find(path)
        file = TensorFile(prefix)
        super().__init__(prefix, file.shapes(), file.read)
        if OBJECTS not in self.shapes:
            raise UserError(
                f"{prefix} is not a checkpoint of OpenNMT-tf 2; convert a checkpoint "
                "of version 1 by loading and saving it with OpenNMT-tf 2"
            )
        self._nodes = _nodes(self)
        self._root = 0 if self.is_saved_model else self._child(0, "model")
        if self._root is None:
            raise UserError(
                f"{prefix} lacks the object 'model'; give a checkpoint of OpenNMT-tf 2"
            )
        self.remaining = {}
        try:
            self._visit(self._root, "", set())
        except RecursionError:
            raise _damage_error(self) from None

    def key(self, name: str) -> str | None:
        """Returns the key of the variable at an object path, or None."""
        node: int | None = self._root
        for part in name.split("/"):
            node = None if node is None else self._child(node, part)
        if node is None:
            return None
        keys = [each.checkpoint_key for each in self._nodes[node].attributes]
        return keys[0] if keys and keys[0] in self.shapes else None

    def moments(self) -> int:
        """Returns the number of optimizer arrays."""
        return sum("/.OPTIMIZER_SLOT/" in name for name in self.shapes)

    def _child(self, node: int, name: str) -> int | None:
        for child in self._nodes[node].children:
            if child.local_name == name:
                return child.node_id
        return None

    def _visit(self, node: int, path: str, visited: set[int]) -> None:
        """Adds the paths of all variables below a node to `remaining`."""
        if node in visited:
            return
        visited.add(node)
        for each in self._nodes[node].attributes:
            if each.checkpoint_key in self.shapes:
                self.remaining[each.checkpoint_key] = path.lstrip("/")
        # Keras also lists all variables by number. Visiting these lists last gives
        # each variable its attribute path.
        children = self._nodes[node].children
        for child in sorted(children, key=lambda c: c.local_name in _LISTS):
            self._visit(child.node_id, f"{path}/{child.local_name}", visited)


def variable_names(store: ArrayStore) -> dict[str, str]:
    """Returns the variables' names by their keys; empty without an object graph.

    Raises:
        UserError: The object graph is damaged.
    """
    nodes = _nodes(store) if OBJECTS in store.shapes else ()
    attributes = (each for node in nodes for each in node.attributes)
    return {each.checkpoint_key: each.full_name for each in attributes}


def _nodes(store: ArrayStore) -> Any:
    """Parses the object graph; raises UserError if it is damaged."""
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from tensorflow.core.protobuf import trackable_object_graph_pb2

    graph = trackable_object_graph_pb2.TrackableObjectGraph
    with suppress(DecodeError):
        nodes = graph.FromString(store.read(OBJECTS).item()).nodes
        children = (child.node_id for node in nodes for child in node.children)
        if nodes and all(0 <= each < len(nodes) for each in children):
            return nodes
    raise _damage_error(store)


def _damage_error(store: ArrayStore) -> UserError:
    return UserError(f"{store.file}: {OBJECTS} is damaged; copy the checkpoint again")
