"""The compiled search returns the translations of the plain search."""

import os
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro import fast
from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.fast import int8_matmul, thresholds, xla_kernels
from t2t_repro.fast.compiled_search import CompiledSearch, pad_length
from t2t_repro.fast.quantization import quantize_model
from t2t_repro.fast.range_observer import RangeObserver
from t2t_repro.fast.searchers import CompiledSearcher
from t2t_repro.models.searcher import EncodedBatch, Searcher
from t2t_repro.translation.translator import Translator
from tests import tiny

SEARCH = DecodingConfig(beam_size=3, extra_length=3)
LINES = [*(source for source, _ in tiny.pairs("test")[:4]), "", "one two " * 4]


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
    searcher = CompiledSearcher(chosen, tokenizer, search)
    compiled = Translator(chosen, tokenizer, search, searcher=searcher)
    expected = list(plain.translate_lines(LINES, batch_size=1))
    results = list(compiled.translate_lines(LINES, batch_size=batch_size))
    assert [each.text for each in results] == [each.text for each in expected]
    assert len({each.text for each in results}) > 3
    for ours, theirs in zip(results, expected, strict=True):
        assert abs(ours.score - theirs.score) < 1e-4
        assert [h.text for h in ours.hypotheses] == [h.text for h in theirs.hypotheses]


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
    searcher = CompiledSearcher([model], tokenizer, SEARCH)
    compiled = Translator(model, tokenizer, SEARCH, searcher=searcher)
    expected = list(plain.translate_lines(LINES, batch_size=1))
    results = list(compiled.translate_lines(LINES, batch_size=1))
    assert [each.text for each in results] == [each.text for each in expected]
    scores = [[each.score for each in both] for both in (results, expected)]
    # A last bit that differs before quantization changes an int8 value by 1.
    np.testing.assert_allclose(*scores, atol=2e-3)


@pytest.fixture
def avx2(monkeypatch):
    fast.install("CPU")
    monkeypatch.setattr(thresholds, "uses_avx512", lambda: False)


def searcher_of(models, tokenizer=None, compile_after=0.0, **changes):
    tokenizer = tokenizer or SimpleNamespace(target=None)
    search = replace(SEARCH, **changes)
    return CompiledSearcher(models, tokenizer, search, compile_after)


def test_compiles_only_a_few_short_sentences(models, avx2, monkeypatch):
    searcher = searcher_of(models[:1], extra_length=50)
    assert searcher.find_program(8, 1) == (8, 32)
    assert searcher.find_program(9, 1) is None
    # Searches of an ensemble do not run at once.
    assert searcher_of(models).find_program(8, 1) is None
    monkeypatch.setattr(thresholds, "uses_avx512", lambda: True)
    searcher = searcher_of(models[:1], extra_length=50)
    assert searcher.find_program(1, 1) and searcher.find_program(4, 192)
    # A source of 193 tokens is padded to 224, and may take 274 steps.
    assert searcher.find_program(1, 193) is None
    assert searcher.find_program(5, 1) is None


@pytest.mark.parametrize(
    ("sentences", "most", "expected"),
    [(1, 32, 1), (4, 32, 4), (5, 32, 3), (16, 32, 8), (18, 32, 18), (4, 2, 2)],
)
def test_more_than_a_few_sentences_are_divided(
    models, avx2, monkeypatch, sentences, most, expected
):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(2))
    assert searcher_of(models[:1]).rows_of_few(sentences, most) == expected


def test_prefixes_are_searched_without_a_program(models, tokenizer, avx2, monkeypatch):
    searcher = searcher_of(models[:1], tokenizer)
    translator = Translator(models[:1], tokenizer, SEARCH, searcher=searcher)
    monkeypatch.setattr(
        CompiledSearch, "__call__", lambda *_: pytest.fail("CompiledSearch was called")
    )
    (translation,) = translator.translate_window(["one"], prefixes=["neun"])
    assert translation.text.startswith("neun")


@pytest.mark.medium
def test_a_thread_compiles_shapes_that_took_long(models, avx2):
    searcher = searcher_of(models[:1], compile_after=2.0, beam_size=1)
    # The first time of each shape, 9 s, does not count.
    times = [(2, 17, 9.0), (1, 3, 9.0), (2, 17, 1.5), (1, 3, 1.9), (2, 9, 0.6)]
    for sentences, source, seconds in times:
        assert searcher.find_program(sentences, source) is None
        searcher.add(sentences, source, seconds)
    assert [*searcher._compiled] == [(2, 32)]
    searcher.wait()
    # A program also serves sources of half of its length.
    searcher._compiled[2, 64] = searcher._compiled[2, 32]
    ready = [searcher.find_program(2, n) for n in (3, 32, 33, 65)]
    assert ready == [(2, 32), (2, 32), (2, 64), None]
    # One of several parallel searches also serves a sentence less.
    assert searcher.find_program(1, 3) == (2, 32)
    assert searcher.find_program(3, 3) is None
    del searcher._compiled[2, 64]
    plain = Searcher(models[:1], SimpleNamespace(target=None), searcher.config)
    for inputs in ([[5, 6, 1], [7, 1, 0]], [[5] * 31 + [1]]):
        inputs = tf.constant(inputs)
        expected, scores = plain.search(inputs)
        ids, ours = searcher.search_batch(None, EncodedBatch(inputs))
        np.testing.assert_array_equal(ids[:, :, : expected.shape[2]], expected)
        np.testing.assert_allclose(ours, scores, atol=1e-4)
    program = searcher._search_few._search_memories
    assert program.experimental_get_tracing_count() == 1
    kernel = models[0].decoder.layer_0.feed_forward.hidden.kernel
    before = kernel.numpy()
    kernel.assign(before + 1.0)
    assert searcher.find_program(1, 3) is None
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
    assert not search.may_crash(4)
    search.copy_weights()
    inputs = tf.ones([4, 160], tf.int32)
    program = search._search_memories.experimental_get_compiler_ir(
        inputs, search._read(inputs)
    )
    assert ynnpack not in program(stage="optimized_hlo")


def test_lengths_are_padded_to_multiples_of_32():
    assert [pad_length(n) for n in (3, 4, 32, 33)] == [32, 32, 32, 64]
