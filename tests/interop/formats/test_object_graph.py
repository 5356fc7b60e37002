"""Tests of the graph of objects in a checkpoint of OpenNMT-tf 2."""

import pytest
from tensorflow.core.protobuf.trackable_object_graph_pb2 import TrackableObjectGraph

from t2t_repro.interop.formats.object_graph import OBJECTS, ObjectStore
from t2t_repro.runs.tensor_file import write_tensors
from t2t_repro.system.errors import UserError


def write_graph(folder, *children):
    """Writes a checkpoint whose nodes have one child each, named "model"."""
    graph = TrackableObjectGraph()
    for child in children:
        graph.nodes.add().children.add(node_id=child, local_name="model")
    write_tensors(folder / "ckpt-1", {OBJECTS: graph.SerializeToString()})
    return folder / "ckpt-1"


def test_an_object_may_contain_itself(tmp_path):
    assert ObjectStore(write_graph(tmp_path, 1, 0)).remaining == {}


@pytest.mark.parametrize(
    "children", [[], [1], [0, 2], [-1], [*range(1, 3000), 0]], ids=len
)
def test_rejects_unknown_and_deeply_nested_objects(tmp_path, children):
    with pytest.raises(UserError, match=f"{OBJECTS} is damaged; copy the checkpoint"):
        ObjectStore(write_graph(tmp_path, *children))
