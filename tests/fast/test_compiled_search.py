"""The compiled search returns the translations of the plain search."""

from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro import fast
from t2t_repro.decoding.config import DecodingConfig, Sampling
from t2t_repro.fast import compiled_search, int8_matmul, xla_kernels
from t2t_repro.fast.compiled_search import CompiledSearch
from t2t_repro.fast.quantization import RangeObserver, quantize_model
from t2t_repro.models.generate import generate
from t2t_repro.translation.translator import Translator
from tests import tiny

SEARCH = DecodingConfig(beam_size=3, extra_length=3)
LINES = [*(source for source, _ in tiny.pairs("test")[:4]), "", "one two " * 4]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return tiny.tokenizer(tmp_path_factory.mktemp("vocabulary"))


@pytest.fixture(scope="module")
def models():
    return [tiny.random_model(), tiny.random_model(seed=2)]


@pytest.mark.medium
@pytest.mark.parametrize(
    ("changes", "ensemble", "batch_size"),
    [
        ({"nbest": 3, "alpha": 0.0, "no_repeat_ngram": 2}, True, 1),
        ({"algorithm": "opennmt", "min_length": 9}, False, 3),
        (
            {"algorithm": "marian", "never": (5,), "length_factor": 1.5, "alpha": 1.0},
            False,
            1,
        ),
        ({"algorithm": "transformers", "alpha": 1.0}, False, 1),
    ],
    ids=str,
)
def test_compiled_search_equals_the_plain_search(
    models, tokenizer, changes, ensemble, batch_size
):
    search = replace(SEARCH, **changes)
    chosen = models if ensemble else models[:1]
    plain = Translator(chosen, tokenizer, search)
    for_few = CompiledSearch(chosen, search)
    compiled = Translator(chosen, tokenizer, search, for_few=for_few)
    expected = list(plain.translate_lines(LINES, batch_size=1))
    results = list(compiled.translate_lines(LINES, batch_size=batch_size))
    assert [each.text for each in results] == [each.text for each in expected]
    assert len({each.text for each in results}) > 3
    for ours, theirs in zip(results, expected, strict=True):
        assert abs(ours.score - theirs.score) < 1e-4
        assert [o.text for o in ours.others] == [o.text for o in theirs.others]


@pytest.mark.medium
@pytest.mark.skipif(
    int8_matmul.unsupported_reason() is not None,
    reason=f"{int8_matmul.unsupported_reason()}",
)
def test_compiled_int8_search_equals_the_int8_search(tokenizer):
    fast.install("CPU")
    model = tiny.random_model(norm="pre")
    with RangeObserver(model) as observer:
        list(Translator(model, tokenizer, SEARCH).translate_lines(LINES))
    quantize_model(model, observer.bounds(1.0))
    plain = Translator(model, tokenizer, SEARCH)
    compiled = Translator(
        model, tokenizer, SEARCH, for_few=CompiledSearch([model], SEARCH)
    )
    expected = list(plain.translate_lines(LINES, batch_size=1))
    results = list(compiled.translate_lines(LINES, batch_size=1))
    assert [each.text for each in results] == [each.text for each in expected]
    scores = [[each.score for each in both] for both in (results, expected)]
    # A last bit that differs before quantization changes an int8 value by 1.
    np.testing.assert_allclose(*scores, atol=2e-3)


def test_compiles_only_a_few_short_sentences(models, tokenizer, monkeypatch):
    fast.install("CPU")
    monkeypatch.setattr(compiled_search, "uses_avx512", lambda: False)
    search = CompiledSearch(models[:1], replace(SEARCH, extra_length=50))
    # Searches of an ensemble do not run at once.
    ensemble = CompiledSearch(models, SEARCH)
    assert search.is_ready(8, 1) and not ensemble.is_ready(8, 1)
    assert search.is_parallel(8) and not ensemble.is_parallel(1)
    assert not search.is_parallel(9)
    monkeypatch.setattr(compiled_search, "uses_avx512", lambda: True)
    search = CompiledSearch(models[:1], replace(SEARCH, extra_length=50))
    assert search.is_ready(1, 1) and search.is_ready(4, 192)
    # A source of 193 tokens is padded to 224, and may take 274 steps.
    assert not search.is_ready(1, 193)
    assert not search.is_ready(5, 1)
    # Prefixes are translated without the compiled search.
    for_few = CompiledSearch(models[:1], SEARCH)
    translator = Translator(models[:1], tokenizer, SEARCH, for_few=for_few)
    monkeypatch.setattr(
        CompiledSearch, "__call__", lambda *_: pytest.fail("CompiledSearch was called")
    )
    (translation,) = translator.translate_window(["one"], prefixes=["neun"])
    assert translation.text.startswith("neun")


@pytest.mark.medium
def test_a_thread_compiles_shapes_that_took_long(models):
    fast.install("CPU")
    search = CompiledSearch(models[:1], replace(SEARCH, beam_size=1), compile_after=2.0)
    # The first time of each shape, 9 s, does not count.
    times = [(2, 17, 9.0), (1, 3, 9.0), (2, 17, 1.5), (1, 3, 1.9), (2, 9, 0.6)]
    for sentences, source, seconds in times:
        assert not search.is_ready(sentences, source)
        search.add(sentences, source, seconds)
    assert [*search._compiled] == [(2, 32)]
    search._compiled[2, 32].result()
    # A program also serves sources of half of its length.
    search._compiled[2, 64] = search._compiled[2, 32]
    ready = [search._ready_shape(2, n) for n in (3, 32, 33, 65)]
    assert ready == [(2, 32), (2, 32), (2, 64), None]
    # One of several parallel searches also serves a sentence less.
    search._most_per_core = 0
    assert not search.is_ready(1, 3)
    search._most_per_core = 2
    assert search._ready_shape(1, 3) == (2, 32) and not search.is_ready(3, 3)
    plain = Translator(models[:1], None, search._search)
    for inputs in ([[5, 6, 1], [7, 1, 0]], [[5] * 31 + [1]]):
        inputs = tf.constant(inputs)
        expected, scores = plain.translate_ids(inputs)
        ids, ours = search(inputs)
        np.testing.assert_array_equal(ids[:, :, : expected.shape[2]], expected)
        np.testing.assert_allclose(ours, scores, atol=1e-4)
    assert search._search_memories.experimental_get_tracing_count() == 1
    kernel = models[0].decoder.layer_0.feed_forward.hidden.kernel
    before = kernel.numpy()
    kernel.assign(before + 1.0)
    assert not search.is_ready(1, 3)
    kernel.assign(before)


@pytest.mark.medium
def test_programs_of_parallel_searches_do_not_use_ynnpack():
    """In YNNPACK, two searches at once crashed, but in thousands of them only once."""
    ynnpack = "__ynn_fusion"

    @tf.function(jit_compile=True)
    def softmax(x):
        return tf.nn.softmax(x)

    large = tf.zeros([2, xla_kernels.LARGE_REDUCTION // 2])
    optimized = softmax.experimental_get_compiler_ir(large)(stage="optimized_hlo")
    if ynnpack not in optimized:
        pytest.skip("XLA of this version does not use YNNPACK")
    fast.install("CPU")
    # Softmax, its sum over blocks and the maxima of top_k are large reductions.
    model = tiny.random_model(vocab_divisor=40_007)
    search = CompiledSearch([model], replace(SEARCH, beam_size=8, min_length=3))
    assert not search._may_crash(4)
    inputs = tf.ones([4, 160], tf.int32)
    program = search._search_memories.experimental_get_compiler_ir(
        inputs, search._read(inputs)
    )
    assert ynnpack not in program(stage="optimized_hlo")


def test_lengths_are_padded_to_multiples_of_32():
    lengths = [compiled_search._padded_length(n) for n in (3, 4, 32, 33)]
    assert lengths == [32, 32, 32, 64]


@pytest.mark.parametrize(
    "changes", [{"sampling": Sampling()}, {"tensor2tensor_rules": True}], ids=str
)
def test_rejects_sampling_and_tensor2tensor_rules(models, changes):
    search = replace(SEARCH, **changes)
    with pytest.raises(ValueError, match="supports neither sampling"):
        CompiledSearch(models[:1], search)
    with pytest.raises(ValueError, match="width cannot be combined"):
        generate(search, None, tf.constant([[5, 1]]), width=4)
