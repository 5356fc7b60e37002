"""Computes the cases of `test_backends.py` with another Keras backend.

    KERAS_BACKEND=jax python -m tests.keras_api.another_backend WEIGHTS OUTPUTS

The test writes the weights and compares the outputs with those of TensorFlow.
"""

import importlib
import random
import sys
from collections.abc import Callable, Iterator, Mapping

import keras
import numpy as np

import t2t_repro
from t2t_repro import layers
from tests.keras_api.every_layer import CASES, SIZES

PAIRS = {
    "inputs": np.array([[5, 6, 7, 1, 0], [8, 1, 0, 0, 0]], "int32"),
    "targets": np.array([[4, 9, 1, 0], [3, 3, 3, 1]], "int32"),
}
MODELS = {
    "base": {},
    "pre": {"norm": "pre", "position": "learned", "share_embeddings": False},
    "relative": {"position": "none", "max_relative_position": 2},
}


def transformer(**options: object) -> keras.Model:
    model = t2t_repro.Transformer(
        11, d_model=8, num_layers=1, num_heads=2, d_ff=12, **options
    )
    model.build()
    return model


def with_carried_mask(
    weights: Mapping[str, np.ndarray] | None,
) -> tuple[keras.Model, object]:
    """Returns a model whose encoder uses the mask of an embedding, and its output."""
    ids = keras.Input((None,), dtype="int32")
    x = layers.TokenEmbedding(11, 8, mask_zero=True, name="embedding")(ids)
    x = layers.Encoder(2, **SIZES, name="encoder")(x)
    x = keras.layers.GlobalAveragePooling1D()(x)
    model = keras.Model(ids, x)
    assign(model, "carried", weights)
    return model, compute(model, PAIRS["inputs"])


def assign(
    layer: keras.layers.Layer, case: str, weights: Mapping[str, np.ndarray] | None
) -> None:
    """Assigns a layer's weights by path, if they are given."""
    for weight in layer.weights if weights is not None else ():
        weight.assign(weights[f"{case}:{weight.path}"])


def compute(function: Callable[..., object], *inputs: object) -> object:
    """Calls a function; JAX compiles it, which is faster than each operation."""
    if keras.backend.backend() == "jax":
        function = importlib.import_module("jax").jit(function)
    return function(*inputs)


def computed(
    weights: Mapping[str, np.ndarray] | None = None,
) -> Iterator[tuple[str, keras.layers.Layer, object]]:
    """Yields each case's name, its layer or model, and the output.

    Args:
        weights: Weights by case and path; None: random weights.
    """
    for name, case in CASES.items():
        layer = case.make(name="layer")
        layer(*case.inputs, **case.options)
        assign(layer, name, weights)
        yield name, layer, layer(*case.inputs, **case.options)
    yield "carried", *with_carried_mask(weights)
    loss = t2t_repro.losses.LabelSmoothedCrossEntropy()
    for name, options in MODELS.items():
        model = transformer(**options)
        assign(model, name, weights)
        logits = compute(model, PAIRS)
        yield name, model, logits
        yield f"loss of {name}", model, loss(PAIRS["targets"], logits)


def check_dropout() -> None:
    """Checks that dropout with a given seed applies its rate reproducibly."""
    layer, x = layers.Dropout(0.3, name="dropout"), np.ones(100_000, "float32")

    def dropped(*seed: int) -> np.ndarray:
        with layers.dropout_seed(keras.ops.convert_to_tensor(seed, "int32")):
            return keras.ops.convert_to_numpy(layer(x, training=True))

    one = dropped(3, -4)
    assert abs((one == 0).mean() - 0.3) < 4 * (0.3 * 0.7 / len(x)) ** 0.5
    np.testing.assert_array_equal(one, dropped(3, -4))
    assert not np.array_equal(one, dropped(4, -4))


def main(weights_path: str, outputs_path: str) -> None:
    with np.load(weights_path) as weights:
        outputs = {
            name: keras.ops.convert_to_numpy(output)
            for name, _, output in computed(weights)
        }
    np.savez(outputs_path, **outputs)
    check_dropout()
    # Keras draws its seeds from `random`; its set_random_seed would import TensorFlow.
    random.seed(1)
    model = transformer(dropout=0.1)
    optimizer = keras.optimizers.Adam(0.01)
    model.compile(optimizer, t2t_repro.losses.LabelSmoothedCrossEntropy())
    data = PAIRS, PAIRS["targets"]
    losses = model.fit(*data, epochs=40, verbose=0).history["loss"]
    assert losses[-1] < 0.7 * losses[0], losses
    assert "tensorflow" not in sys.modules
    print(keras.backend.backend())


if __name__ == "__main__":
    main(*sys.argv[1:])
