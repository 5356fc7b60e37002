"""Checkpoints of earlier versions of tensor2tensor, and of TensorFlow 2."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.interop.tensor2tensor import sets
from t2t_repro.interop.tensor2tensor.checkpoint import T2TCheckpoint
from t2t_repro.interop.tensor2tensor.importer import read
from t2t_repro.runs.tensor_file import write_tensors
from t2t_repro.system.errors import UserError
from tests import golden
from tests.interop.tensor2tensor.run import write_vocabulary

GOLDEN = Path(__file__).parents[2] / "data" / "golden"
SIZES = {"hidden_size": 8, "filter_size": 12, "num_heads": 2, "num_hidden_layers": 1}
CHANNELS = {"attention_key_channels": 4, "attention_value_channels": 8}


# The released code of a tag (models/transformer.py:model_fn_body) computed the logits
# from random weights, in TensorFlow 2.21 with compat.v1. A function that creates the
# same variables replaced tf.layers.conv2d.
@pytest.mark.parametrize(
    ("tag", "name", "sizes"),
    [
        ("v1.0.14", "transformer_base_v1", SIZES),
        ("v1.2.9", "transformer_base_v2", SIZES | CHANNELS),
    ],
)
def test_logits_equal_those_of_an_earlier_version(tmp_path, tag, name, sizes):
    arrays = golden.load(GOLDEN / f"t2t_{tag}.npz")
    prefix = "variables/"
    variables = {k: v for k, v in arrays.items() if k.startswith(prefix)}
    variables = {k.removeprefix(prefix): v for k, v in variables.items()}
    write_tensors(tmp_path / "model.ckpt-1", variables)
    vocab_file = write_vocabulary(tmp_path / "vocab.subwords", 18)
    source = read(tmp_path, sets.load(name) | sizes, vocab_file, target_space_id=9)
    assert source.every_array and source.hparams.attention_bias
    logits = source.build()({k: tf.constant(arrays[k]) for k in ("inputs", "targets")})
    np.testing.assert_allclose(logits.numpy(), arrays["logits"], atol=1e-5)


SHAPES = {
    "embedding/table": (5, 2),
    "encoder/layer_0/self_attention/query/kernel": (2, 1),
    "encoder/layer_0/self_attention/key/kernel": (2, 1),
    "encoder/layer_0/self_attention/value/kernel": (2, 3),
    "encoder/layer_0/self_attention/output/kernel": (3, 2),
    "encoder/layer_0/self_attention/output/bias": (2,),
}
SCOPE = "transformer/body/encoder/layer_0/self_attention/multihead_attention"
CURRENT = {
    "transformer/symbol_modality_5_2/shared/weights_0": np.float32([[1, 2]] * 5),
    f"{SCOPE}/q/kernel": np.float32([[1], [6]]),
    f"{SCOPE}/k/kernel": np.float32([[2], [7]]),
    f"{SCOPE}/v/kernel": np.float32([[3, 4, 5], [8, 9, 10]]),
    f"{SCOPE}/output_transform/kernel": np.float32([[1, 2], [3, 4], [5, 6]]),
    f"{SCOPE}/output_transform/bias": np.float32([1, 2]),
}
FUSED = {k: v for k, v in CURRENT.items() if not k.endswith(("/q/kernel", "/k/kernel"))}
del FUSED[f"{SCOPE}/v/kernel"]
FUSED[f"{SCOPE}/qkv_transform/kernel"] = np.float32([[[range(1, 6), range(6, 11)]]])


def with_moments(variables):
    """Adds moments: the variables plus 100 and plus 200."""
    return variables | {
        f"training/{name}/{slot}": value + np.float32(offset)
        for slot, offset in (("Adam", 100), ("Adam_1", 200))
        for name, value in variables.items()
    }


def renamed(old, new, variables=CURRENT):
    variables = with_moments(variables).items()
    return {name.replace(old, new): value for name, value in variables}


def write_objects(path, variables):
    """Writes an object-based checkpoint, as TensorFlow 2 does by default."""
    items = enumerate(variables.items())
    named = {f"v{n}": tf.Variable(value, name=name) for n, (name, value) in items}
    tf.train.Checkpoint(**named).write(str(path))


@pytest.mark.parametrize(
    ("variables", "write"),
    [
        (renamed("transformer/", ""), write_tensors),
        # tensor2tensor 1.15.7 in TensorFlow 2 (tensor2tensor issue 1849)
        (renamed("/body/", "/body/parallel_0/body/"), write_tensors),
        (
            renamed("transformer/", "transformer/parallel_0_4/transformer/"),
            write_tensors,
        ),
        (renamed("_transform/", "_transform_single/", FUSED), write_tensors),
        (with_moments(CURRENT), write_objects),
    ],
)
def test_reads_former_names(tmp_path, variables, write):
    write(tmp_path / "model.ckpt-0", variables)
    checkpoint = T2TCheckpoint(tmp_path / "model.ckpt-0")
    checkpoint.check_tables(5, 5, 2, shared=True)
    weights = checkpoint.weights(SHAPES, "post")
    for (name, value), expected in zip(weights.items(), CURRENT.values(), strict=True):
        np.testing.assert_array_equal(value, expected, err_msg=name)
    moments, _ = checkpoint.moments(SHAPES, "post", {"beta1": 0.9, "beta2": 0.98})
    for name, value in weights.items():
        np.testing.assert_array_equal(moments[f"m/{name}"], value + 100)
        np.testing.assert_array_equal(moments[f"v/{name}"], value + 200)
    assert checkpoint.unused() == {}
    assert checkpoint.attention_bias


def test_rejects_two_models_in_one_checkpoint(tmp_path):
    write_tensors(tmp_path / "model", CURRENT | renamed("transformer/", ""))
    with pytest.raises(UserError, match=r"are both .* give a checkpoint of one model"):
        T2TCheckpoint(tmp_path / "model")


@pytest.mark.parametrize(
    "shapes",
    [
        {"q_transform/kernel": ()},
        {"kv_transform/kernel": (2, 4), "output_transform_single/kernel": (2,)},
    ],
)
def test_rejects_fused_variables_of_another_shape(tmp_path, shapes):
    scope = "body/encoder/layer_0/self_attention/multihead_attention"
    variables = {f"{scope}/{name}": np.zeros(s, "f4") for name, s in shapes.items()}
    write_tensors(tmp_path / "model.ckpt-1", variables)
    with pytest.raises(UserError, match="is not an attention; copy the checkpoint"):
        T2TCheckpoint(tmp_path / "model.ckpt-1")
