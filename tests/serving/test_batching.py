"""The test server merges, pads and splits requests like TensorFlow Serving."""

import threading
import time

import numpy as np
import pytest

from t2t_repro.serving.server.batching import (
    Batcher,
    BatchingParameters,
    merge,
    padded_size,
    split,
)
from t2t_repro.serving.server.status import Code, StatusError
from t2t_repro.serving.server_files import write_server_files


def array(*rows):
    return np.array(rows)


def test_parameters_are_read_from_the_servers_file(tmp_path):
    write_server_files(tmp_path, "model")
    results = BatchingParameters.read(tmp_path / "batching_parameters.txt")
    assert results == BatchingParameters(
        max_batch_size=64,
        batch_timeout_micros=5000,
        max_enqueued_batches=100,
        pad_variable_length_inputs=True,
    )


def test_every_field_is_read(tmp_path):
    path = tmp_path / "parameters.txt"
    path.write_text(
        "# a comment { value: 9 }\nmax_batch_size { value: 8 } "
        "num_batch_threads{value:3}\nallowed_batch_sizes : 2\nallowed_batch_sizes: 8\n"
        "pad_variable_length_inputs: true"
    )
    assert BatchingParameters.read(path, batch_timeout_micros=7) == BatchingParameters(
        max_batch_size=8,
        batch_timeout_micros=7,
        num_batch_threads=3,
        allowed_batch_sizes=(2, 8),
        pad_variable_length_inputs=True,
    )


def test_pads_variable_lengths_with_the_first_element_of_each_tensor():
    """As in batching_util.cc. Padding with zeros corrupted token ids (serving#1279)."""
    merged = merge(
        [{"ids": array([5, 6], [7, 8])}, {"ids": array([9, 1, 2])}], rows=3, pad=True
    )
    assert merged["ids"].tolist() == [[5, 6, 5], [7, 8, 5], [9, 1, 2]]


def test_rejects_different_lengths_without_padding():
    with pytest.raises(StatusError, match="different shapes") as caught:
        merge([{"ids": array([5, 6])}, {"ids": array([9])}], rows=2, pad=False)
    assert caught.value.code == Code.FAILED_PRECONDITION


def test_pads_a_batch_with_the_first_row_of_the_last_request():
    requests = [{"text": array("a", "b")}, {"text": array("c", "d")}]
    merged = merge(requests, padded_size(4, (2, 6)), pad=False)
    assert merged["text"].tolist() == ["a", "b", "c", "d", "c", "c"]
    assert [padded_size(size, (2, 6)) for size in (1, 2, 3, 6)] == [2, 2, 6, 6]
    assert padded_size(5, ()) == 5


def test_splits_outputs_by_request_and_drops_the_padding():
    parts = split({"x": np.arange(6), "y": np.eye(6)}, [2, 1], rows=6)
    assert [part["x"].tolist() for part in parts] == [[0, 1], [2]]
    assert parts[1]["y"].shape == (1, 6)


@pytest.mark.parametrize("value", [np.float32(1), np.zeros(2)])
def test_rejects_an_output_without_the_batch_dimension(value):
    with pytest.raises(StatusError) as caught:
        split({"x": np.asarray(value)}, [3], rows=3)
    assert caught.value.code == Code.FAILED_PRECONDITION


class Recorder:
    """A fake model that records the batches and returns the inputs."""

    def __init__(self):
        self.batches = []
        self.released = threading.Event()
        self.released.set()

    def __call__(self, signature, inputs):
        self.batches.append((signature, inputs["text"].tolist()))
        self.released.wait(10)
        if b"bad" in inputs["text"]:
            raise StatusError(Code.INVALID_ARGUMENT, "bad")
        return {"echo": inputs["text"]}


def send(batcher, *requests):
    """Sends requests in parallel; returns the list of results, and the threads."""
    results = [None] * len(requests)

    def send_one(n, texts):
        try:
            inputs = {"text": np.array(texts, object)}
            results[n] = batcher("s", inputs)["echo"].tolist()
        except StatusError as error:
            results[n] = error

    threads = [
        threading.Thread(target=send_one, args=(n, texts))
        for n, texts in enumerate(requests)
    ]
    for thread in threads:
        thread.start()
        time.sleep(0.01)  # Keeps the requests in order.
    return results, threads


def test_simultaneous_requests_share_a_batch():
    run = Recorder()
    batcher = Batcher(run, BatchingParameters(8, batch_timeout_micros=500_000))
    requests = ([b"a", b"b"], [b"c"], [b"d", b"e", b"f"], [b"g", b"h"])
    results, threads = send(batcher, *requests)
    for thread in threads:
        thread.join()
    # The batch starts before the timeout because it has eight rows.
    assert run.batches == [("s", [b"a", b"b", b"c", b"d", b"e", b"f", b"g", b"h"])]
    assert results == list(requests)
    batcher.close()


def test_a_request_that_does_not_fit_starts_the_next_batch():
    run = Recorder()
    batcher = Batcher(run, BatchingParameters(3, 20_000, num_batch_threads=1))
    results, threads = send(batcher, [b"a", b"b"], [b"c", b"d"])
    for thread in threads:
        thread.join()
    assert [rows for _, rows in run.batches] == [[b"a", b"b"], [b"c", b"d"]]
    assert results == [[b"a", b"b"], [b"c", b"d"]]
    batcher.close()


def test_rejects_large_requests_and_requests_to_a_full_queue():
    run = Recorder()
    run.released.clear()
    parameters = BatchingParameters(2, 0, max_enqueued_batches=1, num_batch_threads=1)
    batcher = Batcher(run, parameters)
    with pytest.raises(StatusError, match="Task size 3 is larger") as caught:
        batcher("s", {"text": np.array([b"a"] * 3, object)})
    assert caught.value.code == Code.INVALID_ARGUMENT
    results, threads = send(batcher, [b"a", b"a"], [b"b", b"b"], [b"c", b"c"])
    run.released.set()
    for thread in threads:
        thread.join()
    assert results[:2] == [[b"a", b"a"], [b"b", b"b"]]
    assert results[2].code == Code.UNAVAILABLE
    batcher.close()


def test_a_failing_request_fails_its_whole_batch():
    """An export must therefore not fail because of the contents of a request."""
    run = Recorder()
    batcher = Batcher(run, BatchingParameters(2, 500_000))
    results, threads = send(batcher, [b"good"], [b"bad"])
    for thread in threads:
        thread.join()
    assert [error.code for error in results] == [Code.INVALID_ARGUMENT] * 2
    batcher.close()
