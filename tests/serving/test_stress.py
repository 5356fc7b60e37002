"""Answers to many parallel clients with batching equal answers to single requests."""

import threading

import numpy as np
import pytest
import tensorflow as tf
from serving_harness.running import serve

from t2t_repro.serving.server.batching import BatchingParameters
from t2t_repro.serving.transport import Server, connect
from tests.serving import small

CLIENTS = 16
POOL = 60
# Hypotheses with nearly equal scores may be swapped because batches change rounding.
TIE = 1e-4


@pytest.fixture(scope="module")
def texts():
    """Returns ordinary sentences and hostile texts of one line.

    The signature `nbest`, to which answers are compared, does not divide texts.
    """
    hostile = [text.decode("utf-8", "replace") for text in small.HOSTILE.values()]
    hostile = [text for text in hostile if "\n" not in text]
    return [*small.sentences(POOL - len(hostile), seed=5), *hostile]


@pytest.fixture(scope="module")
def unbatched(module, texts):
    """Returns the n-best list of each text, searched alone."""
    nbest = module.functions["nbest"]
    answers = [nbest(tf.constant([text])) for text in texts]
    return [
        (
            [text.decode() for text in each["translations"].numpy()[0]],
            each["scores"].numpy()[0],
        )
        for each in answers
    ]


def check(text, score, lists):
    """Checks an answer against an unbatched n-best list: (translations, scores)."""
    translations, scores = lists
    assert score == pytest.approx(scores[0], abs=TIE)
    near = {t for t, s in zip(translations, scores, strict=True) if scores[0] - s < TIE}
    assert text in near


def send_requests(server, requests, texts, unbatched, seed, failures):
    """Sends requests with random numbers of random texts."""
    generator = np.random.default_rng(seed)
    transport = connect(server)
    try:
        for _ in range(requests):
            indices = generator.integers(0, POOL, generator.integers(1, 9))
            inputs = {"text": [texts[n] for n in indices]}
            outputs = ("translations", "scores")
            answers = transport.predict("serving_default", inputs, outputs)
            for n, text, score in zip(
                indices, answers["translations"], answers["scores"], strict=True
            ):
                check(text, score, unbatched[n])
    except BaseException as error:
        failures.append(error)
    finally:
        transport.close()


@pytest.mark.parametrize(
    "requests",
    [
        pytest.param(96, marks=pytest.mark.medium),
        pytest.param(10_000, marks=pytest.mark.slow),
    ],
)
def test_batched_answers_equal_unbatched_answers(
    export_dir, texts, unbatched, requests
):
    parameters = BatchingParameters.read(export_dir / "batching_parameters.txt")
    failures = []
    with serve(export_dir, small.NAME, parameters) as running:
        threads = []
        for n in range(CLIENTS):
            # Half of the clients use each protocol.
            protocol, port = (
                ("grpc", running.grpc_port) if n % 2 else ("rest", running.rest_port)
            )
            server = Server("127.0.0.1", port, small.NAME, protocol)
            number = requests // CLIENTS + (n < requests % CLIENTS)
            arguments = (server, number, texts, unbatched, n, failures)
            threads.append(threading.Thread(target=send_requests, args=arguments))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        merged = running.service.batcher.sizes
    assert failures == []
    # The server merged most requests into batches.
    assert sum(merged) == requests
    assert len(merged) < requests / 2
