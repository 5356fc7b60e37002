"""Every operation of every graph has a kernel for a GPU in TensorFlow's registry.

TensorFlow for Linux on x86-64 is built with CUDA: it lists its kernels for a GPU where
there is none.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.python.framework import kernels

from t2t_repro import fast
from t2t_repro.batches import packed_batch
from t2t_repro.decoding.config import DecodingConfig, Sampling
from t2t_repro.fast.compiled_search import CompiledSearch
from t2t_repro.models.generate import as_one, decoder_of, generate
from t2t_repro.models.halves import HALVES
from t2t_repro.models.precision import mixed_precision, precision
from t2t_repro.training.step import TrainStep
from t2t_repro.training.validation import ValidationLoss
from tests.training import toy

GPU, COMPILED = ("GPU", "DEFAULT"), ("XLA_GPU_JIT",)
PRECISIONS = ("float32", "bfloat16")
IDS = tf.TensorSpec([None, None], tf.int32)
# XLA takes these apart itself: it compiles what they call.
CALLS = {"Placeholder", "NoOp", "PartitionedCall", "StatefulPartitionedCall"}


@pytest.fixture(autouse=True)
def as_on_a_gpu(monkeypatch):
    """Lets the package see a GPU, which decides what is traced."""
    if not tf.test.is_built_with_cuda():
        pytest.skip("this TensorFlow is not built with CUDA: it knows no kernel")
    seen = tf.config.list_physical_devices
    monkeypatch.setattr(
        tf.config,
        "list_physical_devices",
        lambda kind=None: ["GPU:0"] if kind == "GPU" else seen(kind),
    )
    fast.install("GPU")


def without_kernel(
    traced: Any, devices: Sequence[str] = GPU, but: Collection[str] = ()
) -> Counter[str]:
    """Counts by operation the nodes that no such device can run.

    Nodes that are placed on the CPU are not counted. A node is one of the graph or of
    a function in its library, such as a loop's body.
    """
    graph = traced.graph.as_graph_def()
    nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
    assert len(nodes) > 1
    return Counter(
        node.op
        for node in nodes
        if node.op not in but
        and not node.device.endswith("CPU:0")
        and not any(runs(k, node, devices) for k in registered(node.op))
    )


def registered(operation: str) -> Any:
    """Returns the kernels of an operation, for every device."""
    return kernels.get_registered_kernels_for_op(operation).kernel


def types(node: Any, name: str) -> list[int]:
    """Returns the types that an attribute holds, none where it holds no type."""
    value = node.attr[name]
    return [value.type] if value.type else list(value.list.type)


def runs(kernel: Any, node: Any, devices: Sequence[str]) -> bool:
    """Whether a kernel is for one of these devices and for the types of a node."""
    allowed = {c.name: c.allowed_values.list.type for c in kernel.constraint}
    return kernel.device_type in devices and all(
        set(types(node, name)) <= set(values)
        for name, values in allowed.items()
        if values
    )


def traced(function: Any, *signature: Any) -> Any:
    whole = tf.function(function, input_signature=signature, autograph=False)
    return whole.get_concrete_function()


MODELS = {
    "plain": toy.HPARAMS,
    "pre-norm, relative positions": toy.HPARAMS.replace(
        norm="pre", max_relative_position=3
    ),
    "nearby positions": toy.HPARAMS.replace(self_attention_radius=2),
}


@pytest.mark.medium
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("computed_in", PRECISIONS)
def test_a_training_step_and_validation(kind, computed_in):
    hparams = MODELS[kind].replace(precision=computed_in, clip_norm=1.0)
    with mixed_precision(computed_in):
        model = toy.model(hparams)
    for accumulates in (False, True):
        step = TrainStep(model, hparams, accumulates)
        update = traced(
            step.replica_step, packed_batch.SIGNATURE, tf.TensorSpec([], tf.int32)
        )
        assert without_kernel(update) == {}
    assert without_kernel(ValidationLoss(model)._sums.get_concrete_function()) == {}


@pytest.mark.medium
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("computed_in", PRECISIONS)
def test_forward_and_backward_compiled(kind, computed_in):
    hparams = MODELS[kind].replace(precision=computed_in, xla=True)
    with mixed_precision(computed_in):
        model = toy.model(hparams)
    step = TrainStep(model, hparams, accumulate=True)
    compiled = step._differentiate.get_concrete_function(
        *packed_batch.BATCH_SIGNATURE, tf.TensorSpec([HALVES, 2], tf.int32)
    )
    assert without_kernel(compiled, COMPILED, but=CALLS) == {}


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
@pytest.mark.parametrize("computed_in", PRECISIONS)
@pytest.mark.parametrize(
    ("kind", "models"), [*((kind, 1) for kind in SEARCHES), ("beam", 2)]
)
def test_a_search(kind, models, computed_in):
    search = SEARCHES[kind]
    with precision(computed_in):
        several = [toy.model() for _ in range(models)]
    decoder = as_one([decoder_of(each, search.hypotheses) for each in several])

    def found(inputs, prefixes=None):
        result = generate(search, decoder, inputs, prefixes)
        return result.ids, result.scores

    prefixes = [] if search.tensor2tensor_rules else [IDS]
    assert without_kernel(traced(found, IDS, *prefixes)) == {}


@pytest.mark.medium
@pytest.mark.parametrize("computed_in", PRECISIONS)
def test_the_compiled_search(computed_in):
    with precision(computed_in):
        model = toy.model()
    compiled = CompiledSearch([model], DecodingConfig(4))._function(16)
    assert without_kernel(compiled, COMPILED, but=CALLS) == {}


def test_what_has_no_kernel_is_named():
    """Text is for the CPU alone."""
    lines = tf.TensorSpec([None], tf.string)
    upper = traced(lambda text: tf.strings.upper(tf.strings.strip(text)), lines)
    assert without_kernel(upper) == {"StringUpper": 1, "StringStrip": 1}


def test_what_has_no_kernel_is_named_inside_of_a_loop_and_for_its_types_alone():
    def loop(start):
        def more(place, total):
            ends = tf.strings.to_hash_bucket_fast(tf.strings.as_string(place), 7)
            return place + 1, total + tf.cast(ends, tf.int32)

        return tf.while_loop(lambda place, _: place < 9, more, (start, start))

    found = without_kernel(traced(loop, tf.TensorSpec([], tf.int32)))
    assert found == {"AsString": 1, "StringToHashBucketFast": 1}
    # A product has kernels, but none for these numbers.
    whole = tf.TensorSpec([2, 2], tf.int32)
    assert without_kernel(traced(tf.matmul, whole, whole)) == {"MatMul": 1}
