"""Tests of traces of selected steps."""

import pytest
import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from t2t_repro import train
from t2t_repro.training.profiler import Profile
from tests.training import toy


def traced_steps(directory):
    """Returns the step numbers of the only trace in a folder."""
    (path,) = directory.rglob("*.xplane.pb")
    space = xplane_pb2.XSpace.FromString(path.read_bytes())
    steps = set()
    for plane in space.planes:
        for event in (event for line in plane.lines for event in line.events):
            if plane.event_metadata[event.metadata_id].name == "train":
                names = plane.stat_metadata
                stats = {names[stat.metadata_id].name: stat for stat in event.stats}
                steps.add(stats["step_num"].int64_value)
    return steps


@pytest.mark.medium
def test_traces_the_selected_steps(tmp_path):
    loop = toy.loop(tmp_path / "checkpoints")
    profile = Profile(tmp_path / "tensorboard", 2, 4)
    assert loop.run(toy.batches, toy.monitor(), toy.never, profile=profile)
    assert traced_steps(tmp_path) == {2, 3, 4}


@pytest.mark.medium
def test_writes_the_trace_if_training_ends_within_the_range(tmp_path):
    loop = toy.loop(tmp_path / "checkpoints")
    profile = Profile(tmp_path / "tensorboard", 5, 100)
    assert loop.run(toy.batches, toy.monitor(), toy.never, profile=profile)
    assert traced_steps(tmp_path) == {5, 6}


def test_writes_nothing_without_a_range(tmp_path):
    profile = Profile(tmp_path)
    with profile.update(1):
        assert float(tf.constant(1.0)) == 1.0
    profile.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("text", "steps"), [("20", (20, 20)), ("20:25", (20, 25))])
def test_parses_a_range_of_steps(text, steps):
    assert train._step_range(text) == steps


@pytest.mark.parametrize("text", ["", "0", "5:3", "x", "1:", ":4", "-1", "1:2:3", "²"])
def test_rejects_an_invalid_range_of_steps(text):
    with pytest.raises(Exception, match="must be a step or a range"):
        train._step_range(text)
