"""Many clients at once, batching on: every answer is the one that is given alone."""

import threading

import numpy as np
import pytest
from serving_harness.batching import BatchingParameters
from serving_harness.running import serving

from t2t_repro.serving.transport import Server, connect
from tests.serving import small

CLIENTS = 16
POOL = 400
# Hypotheses this near are as good as each other: float32 rounds in another order.
TIE = 1e-4


@pytest.fixture(scope="module")
def texts():
    """Sentences and what people send who mean no good."""
    hostile = [text.decode("utf-8", "replace") for text in small.HOSTILE.values()]
    return [*small.sentences(POOL - len(hostile), seed=5), *hostile]


@pytest.fixture(scope="module")
def alone(export_dir, texts):
    """Each text's answer to a request of its own, without batching."""
    with serving(export_dir, small.NAME) as running:
        server = Server("127.0.0.1", running.grpc_port, small.NAME)
        transport = connect(server)
        outputs = ("translations", "scores")
        found = [
            transport.predict("nbest", {"text": [text]}, outputs) for text in texts
        ]
        transport.close()
    return [(each["translations"][0], each["scores"][0]) for each in found]


def check(text, score, lists):
    """Compares an answer with the one given alone."""
    translations, scores = lists
    assert score == pytest.approx(scores[0], abs=TIE)
    near = {t for t, s in zip(translations, scores, strict=True) if scores[0] - s < TIE}
    assert text in near


def ask_many(server, requests, texts, alone, seed, failures):
    """Sends requests of random sizes and texts one after the other."""
    generator = np.random.default_rng(seed)
    transport = connect(server)
    try:
        for _ in range(requests):
            places = generator.integers(0, POOL, generator.integers(1, 9))
            inputs = {"text": [texts[n] for n in places]}
            outputs = ("translations", "scores")
            found = transport.predict("serving_default", inputs, outputs)
            for n, text, score in zip(
                places, found["translations"], found["scores"], strict=True
            ):
                check(text, score, alone[n])
    except BaseException as error:
        failures.append(error)
    finally:
        transport.close()


@pytest.mark.parametrize(
    "requests",
    [
        pytest.param(300, marks=pytest.mark.medium),
        pytest.param(10_000, marks=pytest.mark.slow),
    ],
)
def test_every_answer_is_the_one_that_is_given_alone(
    export_dir, texts, alone, requests
):
    parameters = BatchingParameters.read(export_dir / "batching_parameters.txt")
    failures = []
    with serving(export_dir, small.NAME, parameters) as running:
        threads = []
        for n in range(CLIENTS):
            # Both protocols at the same time.
            protocol, port = (
                ("grpc", running.grpc_port) if n % 2 else ("rest", running.rest_port)
            )
            server = Server("127.0.0.1", port, small.NAME, protocol)
            share = requests // CLIENTS + (n < requests % CLIENTS)
            arguments = (server, share, texts, alone, n, failures)
            threads.append(threading.Thread(target=ask_many, args=arguments))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        merged = running.service.batcher.sizes
    assert failures == []
    # Most requests ran together with others.
    assert sum(merged) == requests
    assert len(merged) < requests / 2
