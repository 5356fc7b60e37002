"""Tests of imported models against outputs of Marian and Transformers.

The expected values were computed by these programs, or by their formulas in float64.
"""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro import fast
from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.models import generate
from t2t_repro.models.log_probs import log_probs
from t2t_repro.models.variables import named_variables
from t2t_repro.training.losses import LabelSmoothedCrossEntropy
from tests.interop.marian import vectors as marian_vectors
from tests.interop.marian.vectors import (
    CASES,
    from_program_ids,
    program_gradient,
    to_program_ids,
)

pytestmark = pytest.mark.medium


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def vectors(request, shared_dir):
    if not (shared_dir / "marian").is_dir():
        pytest.skip("Marian's reference data are missing")
    return marian_vectors.load(shared_dir, *request.param)


@pytest.fixture
def kernels():
    """Enables the optimized implementations, like the commands."""
    fast.install("CPU")
    yield
    fast.uninstall()


def test_encoder_output_and_logits_are_equal(vectors, formulas):
    inputs, targets = vectors.batch()
    output, _ = vectors.model.encode(inputs)
    expected = vectors.arrays["encoder_output"]
    mask = vectors.arrays["inputs_mask"]
    np.testing.assert_allclose(output.numpy()[mask], expected[mask], atol=1e-4, rtol=0)
    logits = vectors.model({"inputs": inputs, "targets": targets}).numpy()
    mask = vectors.arrays["targets_mask"]
    expected = vectors.arrays["logits"][..., vectors.orders[1]]
    np.testing.assert_allclose(logits[mask][:, 1:], expected[mask], atol=1e-4, rtol=0)
    assert (tf.nn.softmax(logits)[..., 0].numpy() == 0).all()


def loss_and_gradients(vectors, label_smoothing, form, without_padding=True):
    inputs, targets = vectors.batch()
    variables = named_variables(vectors.model)
    weights = (targets != 0).astype(np.float32)
    cross_entropy = LabelSmoothedCrossEntropy(label_smoothing, form, without_padding)
    with tf.GradientTape() as tape:
        logits = vectors.model({"inputs": inputs, "targets": targets})
        losses = cross_entropy.call(targets, logits)
        loss = tf.reduce_sum(losses * weights) / weights.sum()
    values = [variable.value for variable in variables.values()]
    gradients = tape.gradient(loss, values)
    dense = [np.asarray(tf.convert_to_tensor(each)) for each in gradients]
    return float(loss), dict(zip(variables, dense, strict=True))


def compare(vectors, prefix, expected, label_smoothing, form, without_padding=True):
    loss, ours = loss_and_gradients(vectors, label_smoothing, form, without_padding)
    assert loss == pytest.approx(float(vectors.arrays[expected]), abs=1e-4)
    names = [name for name in vectors.arrays if name.startswith(f"{prefix}/")]
    assert names
    for name in names:
        expected_gradient = vectors.arrays[name]
        gradient = program_gradient(name.removeprefix(f"{prefix}/"), ours, vectors)
        # The last row of Transformers' tables is padding.
        if gradient.shape != expected_gradient.shape:
            axis = int(gradient.shape[0] == expected_gradient.shape[0])
            rows = range(gradient.shape[axis])
            expected_gradient = np.take(expected_gradient, rows, axis)
        np.testing.assert_allclose(
            gradient, expected_gradient, atol=1e-5, rtol=0, err_msg=name
        )


def test_losses_and_gradients_equal_marian(vectors, formulas):
    if vectors.program != "marian":
        pytest.skip("the reference data of Transformers have different losses")
    compare(vectors, "grad", "loss", 0.0, "marian")
    compare(vectors, "grad_smoothed", "loss_smoothed", 0.1, "marian")
    compare(vectors, "grad_smoothed_t2t", "loss_smoothed_t2t", 0.1, "t2t")


def test_losses_and_gradients_equal_transformers(vectors, formulas):
    """Excludes <pad> from the softmax, or includes it with a bias of 0."""
    if vectors.program != "transformers":
        pytest.skip("the reference data of Marian have different losses")
    compare(vectors, "grad_without_pad", "loss_without_pad", 0.0, "marian")
    bias = vectors.model.softmax_table.bias
    before = bias.numpy()
    bias.assign(np.concatenate([[0.0], before[1:]]))
    try:
        compare(vectors, "grad", "loss", 0.0, "marian", without_padding=False)
        compare(
            vectors,
            "grad_smoothed",
            "loss_smoothed",
            0.1,
            "marian",
            without_padding=False,
        )
    finally:
        bias.assign(before)


def encode(vectors, lines):
    """Returns sources and targets of lines as this package's ids, padded with 0."""
    return [
        tf.ragged.constant(
            [from_program_ids(vectors.lines[name][n], order) for n in lines], tf.int32
        ).to_tensor()
        for name, order in zip(
            ("source_ids", "target_ids"), vectors.orders, strict=True
        )
    ]


def test_log_probabilities_of_40_lines_are_equal(vectors, formulas):
    expected = vectors.lines["target_token_log_probs"]
    assert len(vectors.lines["source_ids"]) == len(expected) == 40
    result = log_probs(vectors.model, *encode(vectors, range(40))).numpy()
    for number, values in enumerate(expected):
        ours = result[number, : len(values)]
        np.testing.assert_allclose(ours, values, atol=1e-4, rtol=0)


def searching(vectors, search):
    """Returns a function from sources to the ids and scores of the best hypotheses."""
    decoder = generate.make_decoder(vectors.model, search.beam_size)

    signature = [tf.TensorSpec([None, None], tf.int32)]

    @tf.function(input_signature=signature, autograph=False)
    def best_of(inputs):
        result = generate.generate(search, decoder, inputs)
        return result.ids[:, 0], result.scores[:, 0]

    return best_of


# Alpha changes the search, so one model suffices for its other value.
@pytest.mark.parametrize(
    ("vectors", "alpha"),
    [*((case, 0.6) for case in CASES), (CASES[0], 0.0)],
    indirect=["vectors"],
    ids=str,
)
def test_beam_search_equals_tensor2tensor(vectors, kernels, alpha):
    results = vectors.searches[f"{vectors.program}/alpha_{alpha}"]
    compared = 0
    best_of = searching(vectors, DecodingConfig(4, alpha, 50, tensor2tensor_rules=True))
    for number, expected in enumerate(results[20:], 20):
        if number == 37 and vectors.program == "transformers":
            continue  # The expected result is for Marian's tokenization of `</s>`.
        sources, _ = encode(vectors, [number])
        ids, scores = best_of(sources)
        if expected["margin"] >= 5e-5:
            ours = to_program_ids(ids[0].numpy(), vectors.orders[1])
            assert ours == expected["ids"], number
            compared += 1
        assert float(scores[0]) == pytest.approx(expected["score"], abs=1e-3)
    assert compared >= 10
