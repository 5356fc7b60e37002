"""TensorFlow's registry has GPU kernels for all operations of our graphs.

TensorFlow for Linux on x86-64 is built with CUDA, so its registry lists GPU kernels
even on machines without a GPU.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.python.framework import kernels

from t2t_repro import fast
from t2t_repro.batches import packed_batch
from t2t_repro.decoding.config import DecodingConfig, Sampling
from t2t_repro.fast.compiled_search import CompiledSearch
from t2t_repro.models.generate import combine_decoders, generate, make_decoder
from t2t_repro.models.halves import HALVES
from t2t_repro.models.precision import mixed_precision, precision
from t2t_repro.training.step import TrainStep
from t2t_repro.training.validation import ValidationLoss
from tests.sixteen_bits import needs
from tests.training import toy

GPU, COMPILED = ("GPU", "DEFAULT"), ("XLA_GPU_JIT",)
IDS = tf.TensorSpec([None, None], tf.int32)
# XLA inlines the functions that these operations call, so they need no kernels.
CALLS = {"Placeholder", "NoOp", "PartitionedCall", "StatefulPartitionedCall"}


@pytest.fixture(autouse=True)
def traced_for_gpu(fake_gpu):
    """Makes the package trace its graphs for a GPU."""
    if not tf.test.is_built_with_cuda():
        pytest.skip("this TensorFlow is built without CUDA and lists no GPU kernels")
    fast.install("GPU")


def operations_without_kernel(
    traced: Any, devices: Sequence[str] = GPU, exclude: Collection[str] = ()
) -> Counter[str]:
    """Counts, by operation, the nodes that no kernel of the devices supports.

    It includes the functions of the graph's library, such as loop bodies. It skips
    nodes that are placed on the CPU.
    """
    graph = traced.graph.as_graph_def()
    nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
    assert len(nodes) > 1
    return Counter(
        node.op
        for node in nodes
        if node.op not in exclude
        and not node.device.endswith("CPU:0")
        and not any(
            device in devices
            and all({*dtypes(node, name)} <= allowed[name] for name in allowed)
            for device, allowed in registered_kernels(node.op)
        )
    )


@cache
def registered_kernels(operation: str) -> list[tuple[str, dict[str, set[int]]]]:
    """Returns each kernel's device and its dtypes by attribute, where restricted."""
    return [
        (
            kernel.device_type,
            {
                each.name: types
                for each in kernel.constraint
                if (types := {*each.allowed_values.list.type})
            },
        )
        for kernel in kernels.get_registered_kernels_for_op(operation).kernel
    ]


def dtypes(node: Any, name: str) -> list[int]:
    """Returns the dtypes in an attribute of a node."""
    value = node.attr[name]
    return [value.type] if value.type else list(value.list.type)


def traced(function: Any, *signature: Any) -> Any:
    function = tf.function(function, input_signature=signature, autograph=False)
    return function.get_concrete_function()


MODELS = {
    "plain": toy.HPARAMS,
    "pre-norm, relative positions": toy.HPARAMS.replace(
        norm="pre", max_relative_position=3
    ),
    "local attention": toy.HPARAMS.replace(self_attention_radius=2),
}


# The other kinds contain the layers of the plain one, so it suffices in float32. Fewer
# kernels support bfloat16.
GRAPHS = [(kind, "float32" if kind == "plain" else "bfloat16") for kind in MODELS]


@pytest.mark.medium
@pytest.mark.parametrize(("kind", "computed_in"), GRAPHS)
def test_training_and_validation_have_kernels(kind, computed_in):
    hparams = MODELS[kind].replace(precision=computed_in, clip_norm=1.0)
    with mixed_precision(computed_in):
        model = toy.model(hparams)
    # Both ways of training compute the gradient, and only that in bfloat16.
    step = TrainStep(model, hparams, accumulate=kind != "plain")
    update = traced(
        step.replica_step, packed_batch.SIGNATURE, tf.TensorSpec([], tf.int32)
    )
    assert operations_without_kernel(update) == {}
    assert (
        operations_without_kernel(ValidationLoss(model)._sums.get_concrete_function())
        == {}
    )


@pytest.mark.medium
@pytest.mark.parametrize(("kind", "computed_in"), GRAPHS)
def test_compiled_gradients_have_kernels(kind, computed_in):
    hparams = MODELS[kind].replace(precision=computed_in, xla=True)
    with mixed_precision(computed_in):
        model = toy.model(hparams)
    step = TrainStep(model, hparams, accumulate=True)
    compiled = step._differentiate.get_concrete_function(
        *packed_batch.BATCH_SIGNATURE, tf.TensorSpec([HALVES, 2], tf.int32)
    )
    assert operations_without_kernel(compiled, COMPILED, exclude=CALLS) == {}


SEARCHES = {
    "greedy": DecodingConfig(1),
    "beam": DecodingConfig(4),
    "n-best with constraints": DecodingConfig(
        4, nbest=3, min_length=2, no_repeat_ngram=2
    ),
    "tensor2tensor's rules": DecodingConfig(4, tensor2tensor_rules=True),
    "sampling": DecodingConfig(nbest=2, sampling=Sampling(0.7, top_k=5, top_p=0.9)),
}


@pytest.mark.medium
@pytest.mark.parametrize(
    ("kind", "models", "computed_in"),
    [
        *((kind, 2 if kind == "beam" else 1, "bfloat16") for kind in SEARCHES),
        ("sampling", 1, "float32"),
    ],
)
def test_searches_have_kernels(kind, models, computed_in):
    search = SEARCHES[kind]
    with precision(computed_in):
        several = [toy.model() for _ in range(models)]
    decoder = combine_decoders(
        [make_decoder(each, search.hypotheses) for each in several]
    )

    def translate(inputs, prefixes=None):
        result = generate(search, decoder, inputs, prefixes)
        return result.ids, result.scores

    prefixes = [] if search.tensor2tensor_rules else [IDS]
    assert operations_without_kernel(traced(translate, IDS, *prefixes)) == {}


@pytest.mark.medium
@pytest.mark.parametrize(
    "computed_in", ["float32", pytest.param("bfloat16", marks=needs("bfloat16"))]
)
def test_compiled_search_has_kernels(computed_in):
    with precision(computed_in):
        model = toy.model()
    search = CompiledSearch([model], DecodingConfig(4))
    search.copy_weights()
    inputs = tf.constant([[2] * 15 + [1]])
    memories = search._read(inputs)
    assert operations_without_kernel(search._read.get_concrete_function()) == {}
    compiled = search._search_memories.get_concrete_function(inputs, memories)
    assert operations_without_kernel(compiled, COMPILED, exclude=CALLS) == {}


def test_reports_text_operations():
    lines = tf.TensorSpec([None], tf.string)
    upper = traced(lambda text: tf.strings.upper(tf.strings.strip(text)), lines)
    assert operations_without_kernel(upper) == {"StringUpper": 1, "StringStrip": 1}


def test_reports_operations_in_loops_and_unsupported_dtypes():
    def loop(start):
        def body(index, total):
            code = tf.strings.to_hash_bucket_fast(tf.strings.as_string(index), 7)
            return index + 1, total + tf.cast(code, tf.int32)

        return tf.while_loop(lambda index, _: index < 9, body, (start, start))

    counts = operations_without_kernel(traced(loop, tf.TensorSpec([], tf.int32)))
    assert counts == {"AsString": 1, "StringToHashBucketFast": 1}
    # The GPU kernels of MatMul do not support int32.
    matrix = tf.TensorSpec([2, 2], tf.int32)
    assert operations_without_kernel(traced(tf.matmul, matrix, matrix)) == {"MatMul": 1}
