"""The harness merges, pads and splits as TensorFlow Serving's sources say."""

import threading
import time

import numpy as np
import pytest
from serving_harness.batching import (
    Batcher,
    BatchingParameters,
    merge,
    padded_size,
    split,
)
from serving_harness.status import Code, StatusError

pytestmark = pytest.mark.medium


def array(*rows):
    return np.array(rows)


def test_parameters_are_read_from_the_servers_file(export_dir):
    found = BatchingParameters.read(export_dir / "batching_parameters.txt")
    assert found == BatchingParameters(
        max_batch_size=64, batch_timeout_micros=5000, max_enqueued_batches=100
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


def test_variable_lengths_are_padded_with_each_tensors_first_element():
    """batching_util.cc: not with zeros, which corrupted token ids (serving#1279)."""
    merged = merge(
        [{"ids": array([5, 6], [7, 8])}, {"ids": array([9, 1, 2])}], rows=3, pad=True
    )
    assert merged["ids"].tolist() == [[5, 6, 5], [7, 8, 5], [9, 1, 2]]


def test_without_padding_other_lengths_are_refused():
    with pytest.raises(StatusError, match="different shapes") as caught:
        merge([{"ids": array([5, 6])}, {"ids": array([9])}], rows=2, pad=False)
    assert caught.value.code == Code.FAILED_PRECONDITION


def test_a_batch_is_filled_up_with_the_first_row_of_the_last_request():
    requests = [{"text": array("a", "b")}, {"text": array("c", "d")}]
    merged = merge(requests, padded_size(4, (2, 6)), pad=False)
    assert merged["text"].tolist() == ["a", "b", "c", "d", "c", "c"]
    assert [padded_size(size, (2, 6)) for size in (1, 2, 3, 6)] == [2, 2, 6, 6]
    assert padded_size(5, ()) == 5


def test_outputs_are_cut_into_requests_and_the_filling_is_dropped():
    parts = split({"x": np.arange(6), "y": np.eye(6)}, [2, 1], rows=6)
    assert [part["x"].tolist() for part in parts] == [[0, 1], [2]]
    assert parts[1]["y"].shape == (1, 6)


@pytest.mark.parametrize("value", [np.float32(1), np.zeros(2)])
def test_an_output_without_the_batch_is_refused(value):
    with pytest.raises(StatusError) as caught:
        split({"x": np.asarray(value)}, [3], rows=3)
    assert caught.value.code == Code.FAILED_PRECONDITION


class Recorder:
    """Answers with the rows, and remembers batches."""

    def __init__(self):
        self.batches = []
        self.go_on = threading.Event()
        self.go_on.set()

    def __call__(self, signature, inputs):
        self.batches.append((signature, inputs["text"].tolist()))
        self.go_on.wait(10)
        if b"bad" in inputs["text"]:
            raise StatusError(Code.INVALID_ARGUMENT, "bad")
        return {"echo": inputs["text"]}


def send(batcher, *requests):
    """Sends requests at the same time; returns what each got, in their order."""
    found = [None] * len(requests)

    def one(n, texts):
        try:
            inputs = {"text": np.array(texts, object)}
            found[n] = batcher("s", inputs)["echo"].tolist()
        except StatusError as error:
            found[n] = error

    threads = [
        threading.Thread(target=one, args=(n, texts))
        for n, texts in enumerate(requests)
    ]
    for thread in threads:
        thread.start()
        time.sleep(0.01)  # In this order.
    return found, threads


def test_requests_of_the_same_time_run_together_and_each_gets_its_rows():
    run = Recorder()
    batcher = Batcher(run, BatchingParameters(8, batch_timeout_micros=500_000))
    requests = ([b"a", b"b"], [b"c"], [b"d", b"e", b"f"], [b"g", b"h"])
    found, threads = send(batcher, *requests)
    for thread in threads:
        thread.join()
    # Eight rows close the batch before its time is over.
    assert run.batches == [("s", [b"a", b"b", b"c", b"d", b"e", b"f", b"g", b"h"])]
    assert found == list(requests)
    batcher.close()


def test_a_request_that_does_not_fit_opens_the_next_batch():
    run = Recorder()
    batcher = Batcher(run, BatchingParameters(3, 20_000, num_batch_threads=1))
    found, threads = send(batcher, [b"a", b"b"], [b"c", b"d"])
    for thread in threads:
        thread.join()
    assert [rows for _, rows in run.batches] == [[b"a", b"b"], [b"c", b"d"]]
    assert found == [[b"a", b"b"], [b"c", b"d"]]
    batcher.close()


def test_larger_requests_are_refused_and_a_full_queue_says_so():
    run = Recorder()
    run.go_on.clear()
    parameters = BatchingParameters(2, 0, max_enqueued_batches=1, num_batch_threads=1)
    batcher = Batcher(run, parameters)
    with pytest.raises(StatusError, match="Task size 3 is larger") as caught:
        batcher("s", {"text": np.array([b"a"] * 3, object)})
    assert caught.value.code == Code.INVALID_ARGUMENT
    found, threads = send(batcher, [b"a", b"a"], [b"b", b"b"], [b"c", b"c"])
    run.go_on.set()
    for thread in threads:
        thread.join()
    assert found[:2] == [[b"a", b"a"], [b"b", b"b"]]
    assert found[2].code == Code.UNAVAILABLE
    batcher.close()


def test_a_batch_that_fails_fails_for_all_its_requests():
    """So an export must not fail for what one of them holds."""
    run = Recorder()
    batcher = Batcher(run, BatchingParameters(2, 500_000))
    found, threads = send(batcher, [b"good"], [b"bad"])
    for thread in threads:
        thread.join()
    assert [error.code for error in found] == [Code.INVALID_ARGUMENT] * 2
    batcher.close()
