"""Text to text: order, blank lines, batches."""

import os
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig, Sampling
from t2t_repro.translation.parallel_batches import rows_at_once
from t2t_repro.translation.translator import (
    MOST_CHARACTERS,
    Translation,
    Translator,
    windows,
)
from tests import tiny

SEARCH = DecodingConfig(beam_size=3, extra_length=3)
LINES = [source for source, _ in tiny.pairs("test")] + ["ten", "", "one two " * 4]
# No-break space, line separator and ideographic space are spaces to Python, too.
BLANKS = ["", " ", "\t \x0b", "\u00a0", "\u2028", "\u3000 "]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return tiny.tokenizer(tmp_path_factory.mktemp("vocabulary"))


@pytest.fixture(scope="module")
def model():
    return tiny.random_model()


@pytest.fixture(scope="module")
def translator(model, tokenizer):
    return Translator(model, tokenizer, SEARCH)


@pytest.fixture(scope="module")
def nbest(model, tokenizer):
    """The translations of every line as lists of two and of three."""
    searches = {n: replace(SEARCH, nbest=n) for n in (2, 3)}
    return {
        n: list(Translator(model, tokenizer, search).translate_lines(LINES))
        for n, search in searches.items()
    }


@pytest.fixture(scope="module")
def short(model, tokenizer):
    """A translator that reads three subwords and EOS."""
    search = DecodingConfig(beam_size=1, extra_length=1)
    return Translator(model, tokenizer, search, max_input_length=4)


def spelling(model, tokenizer, text):
    """A translator of a model that can only say the first symbol of a text."""
    translator = Translator(
        model, tokenizer, DecodingConfig(beam_size=1, extra_length=1)
    )
    symbol = next(n for n in range(tiny.VOCAB_SIZE) if decoded(tokenizer, n) == text)
    row = np.full((1, 1, 3), symbol, np.int32)
    row[0, 0, 1] = 10

    def translate_ids(inputs, prefixes, terms):
        rows = tf.shape(inputs)[0]
        return tf.repeat(tf.constant(row), rows, axis=0), tf.zeros([rows, 1])

    translator.translate_ids = translate_ids
    return translator


def decoded(tokenizer, symbol):
    return tokenizer.decode(tf.constant([[10, symbol]]))[0].numpy().decode()[1:]


def assert_same(some, others):
    assert [found.text for found in some] == [found.text for found in others]
    np.testing.assert_allclose(
        [found.score for found in some], [found.score for found in others], atol=1e-4
    )
    assert [found.tokens for found in some] == [found.tokens for found in others]


@pytest.fixture(scope="module")
def one_by_one(translator):
    return [next(translator.translate_lines([line])) for line in LINES]


def test_a_translation_depends_on_its_sentence_alone(translator, one_by_one):
    assert len({found.text for found in one_by_one}) > 5
    for batch_size in (2, 5, 32):
        together = list(translator.translate_lines(LINES, batch_size))
        assert_same(together, one_by_one)
    assert_same(list(translator.translate_lines(LINES[::-1]))[::-1], one_by_one)


def test_windows_and_progress_cover_every_line_in_order(translator, one_by_one):
    told = []
    found = translator.translate_lines(
        LINES, 2, window=4, progress=lambda lines, tokens: told.append(lines)
    )
    assert_same(list(found), one_by_one)
    assert sum(told) == len(LINES)


@pytest.mark.parametrize(
    ("sentences", "batch_size", "cores", "expected"),
    [(64, 32, 2, 32), (33, 32, 2, 17), (3, 32, 2, 2), (1, 32, 2, 1), (9, 4, 1, 4)],
)
def test_few_sentences_occupy_all_cores(
    sentences, batch_size, cores, expected, monkeypatch
):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(cores))
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
    assert rows_at_once(sentences, batch_size) == expected


def test_many_threads_translate_without_a_warning(
    model, tokenizer, translator, sixteen_cores
):
    """They wait for one tracing, which TensorFlow takes for as many."""
    fresh = Translator(model, tokenizer, SEARCH)
    expected = list(translator.translate_lines(LINES * 4))
    assert_same(list(fresh.translate_lines(LINES * 4, batch_size=2)), expected)
    assert sixteen_cores.text == ""


def test_every_line_is_tokenised_once(translator, tokenizer, monkeypatch):
    encode, given = tokenizer.encode, []

    def recorded(text):
        given.extend(text.numpy())
        return encode(text)

    monkeypatch.setattr(tokenizer, "encode", recorded)
    translator.translate_window(LINES, batch_size=2)
    assert [text.decode() for text in given] == LINES


def test_a_window_is_given_back_before_the_next_is_read(translator):
    read = []

    def lines():
        for line in LINES[:4]:
            read.append(line)
            yield line

    found = translator.translate_lines(lines(), window=2)
    next(found)
    assert len(read) == 2


def test_no_line_gives_no_translation(translator):
    assert list(translator.translate_lines([])) == []


def test_blank_lines_become_empty(translator):
    for found in translator.translate_lines(BLANKS):
        assert found == ("", 0.0, 0, 0.0, False, (), None)


def test_inputs_that_are_too_long_are_cut_and_flagged(short, tokenizer):
    text = "one two three four five six seven"
    ids = tokenizer.encode(tf.constant([text])).to_list()[0]
    assert len(ids) > 5
    encoded = short.encode(tf.constant([text, "t"])).numpy()
    assert encoded[0].tolist() == [*ids[:3], 1]
    assert encoded.shape == (2, 4)
    long, small = short.translate_lines([text, "t"])
    assert (long.cut, small.cut) == (True, False)
    # The rest of the text is not read.
    assert long.text == next(short.translate_lines([text + " eight"])).text


def test_of_an_endless_line_only_the_beginning_is_read(short):
    beginning = "one two three four " * 4
    line = beginning + "x" * (10 * MOST_CHARACTERS)
    blank = " " * MOST_CHARACTERS + "x"
    found, found_blank, part = short.translate_window([line, blank, beginning])
    assert found == part
    assert found.cut
    assert (found_blank.text, found_blank.cut) == ("", True)


def test_windows_are_bounded_by_lines_and_by_characters():
    lines = ["x"] * 5 + ["x" * 1_000_000] * 9 + ["x"] * 2
    assert [len(window) for window in windows(lines, 3)] == [3, 3, 3, 3, 3, 1]
    # 2^22 characters are five of the long lines.
    assert [len(window) for window in windows(lines, 100)] == [10, 6]
    assert [line for window in windows(lines, 100) for line in window] == lines
    assert list(windows([], 3)) == []


def test_the_best_of_many_is_the_best_of_one(nbest, one_by_one):
    for size, found in nbest.items():
        assert_same(found, one_by_one)
        assert max(len(each.others) for each in found) == size - 1
        for each in found:
            scores = [each.score, *(other.score for other in each.others)]
            assert scores == sorted(scores, reverse=True)
            assert scores[-1] > -1e6
            assert all(other.tokens > 0 for other in each.others)
        assert found[LINES.index("")].others == ()


def test_scores_are_log_probabilities_over_the_length_penalty(nbest):
    """Wu et al. 2016, equation 14: ((5 + length) / 6)^alpha."""
    for translation in nbest[3]:
        for each in (translation, *translation.others):
            penalty = ((5 + each.tokens) / 6) ** 0.6
            assert each.log_prob == pytest.approx(each.score * penalty, rel=1e-6)


def test_batches_of_tensor2tensors_rules_are_tensor2tensors(model, tokenizer):
    """Sorted by words, whatever their subwords and the cores; stripped."""
    search = replace(SEARCH, tensor2tensor_rules=True)
    translator = Translator(model, tokenizer, search)
    batches = []

    def translate_batches(inputs, prefixes, terms):
        batches.extend(translator.decode(ids).numpy().tolist() for ids in inputs)
        raise StopIteration

    translator.translate_batches = translate_batches
    lines = ["seventeen", " one two ", "", "ten", "a b c", "two one", "x"]
    with pytest.raises(StopIteration):
        translator.translate_window(lines, batch_size=2)
    assert batches == [
        [b"a b c", b"one two"],
        [b"two one", b"seventeen"],
        [b"ten", b"x"],
    ]


def test_what_never_ended_has_its_log_probability_for_a_score(model, tokenizer):
    """beam_search.py:beam_search, where no hypothesis is finished."""
    search = DecodingConfig(beam_size=1, extra_length=0, tensor2tensor_rules=True)
    translator = Translator(model, tokenizer, search)
    ends = []
    for line in filter(None, map(str.strip, LINES)):
        ids, scores = translator.translate_ids(translator.encode(tf.constant([line])))
        ends.append(1 in ids.numpy())
        (found,) = translator.translate_lines([line])
        penalty = ((5 + found.tokens) / 6) ** 0.6 if ends[-1] else 1.0
        assert found.log_prob == pytest.approx(scores.numpy().item() * penalty)
    assert not all(ends)


def test_hypotheses_of_a_list_do_not_depend_on_its_length(nbest):
    for two, three in zip(nbest[2], nbest[3], strict=True):
        assert [other.text for other in two.others] == [
            other.text for other in three.others[:1]
        ]


def test_places_that_no_hypothesis_fills_are_left_out(model, tokenizer, monkeypatch):
    monkeypatch.setattr(
        os, "sched_getaffinity", lambda process: {0}
    )  # Both lines are one batch.
    translator = Translator(model, tokenizer, DecodingConfig(beam_size=3, nbest=3))
    ids = tf.constant([[[10, 1], [0, 0], [0, 0]], [[10, 11], [10, 1], [0, 0]]])
    scores = tf.constant([[-0.5, -1e7, -1e7], [-0.25, -0.75, -1e7]])
    translator.translate_ids = lambda *inputs: (ids, scores)
    one, two = translator.translate_window(["one", "one"])
    assert (one.score, one.tokens, one.others) == (-0.5, 2, ())
    assert (two.score, two.tokens) == (-0.25, 2)
    assert [(other.score, other.tokens) for other in two.others] == [(-0.75, 2)]


def test_progress_tells_lines_and_tokens(translator):
    told = []
    found = translator.translate_window(LINES, 2, lambda *counts: told.append(counts))
    lines, tokens = zip(*told, strict=True)
    assert sum(lines) == len(LINES)
    assert sum(tokens) == sum(each.tokens for each in found)


def test_a_fingerprint_changes_with_any_weight(model, tokenizer):
    translator = Translator(model, tokenizer)
    before = translator.fingerprint()
    assert (
        before
        == Translator(model, tokenizer, DecodingConfig(beam_size=1)).fingerprint()
    )
    variable = model.trainable_variables[-1]
    kept = variable.numpy()
    changed = kept.copy()
    changed.flat[-1] += 1
    try:
        variable.assign(changed)
        assert translator.fingerprint() != before
    finally:
        variable.assign(kept)
    assert translator.fingerprint() == before


@pytest.mark.parametrize("line_break", ["\n", "\r"])
def test_a_line_break_that_the_model_spells_becomes_a_space(
    model, tokenizer, line_break
):
    """Else one line in would give two lines out."""
    translator = spelling(model, tokenizer, line_break)
    (found,) = translator.translate_lines(["one"])
    assert found.text.splitlines() == [found.text]
    assert " " in found.text


def test_every_sequence_of_symbols_gives_valid_utf8(translator):
    """Byte pieces can be in any order, most of which is no UTF-8."""
    ids = np.random.default_rng(4).integers(2, tiny.VOCAB_SIZE, (200, 12), np.int32)
    for text in translator.decode(tf.constant(ids)).numpy():
        assert "\n" not in text.decode("utf-8")


def test_translations_begin_as_they_are_told_to(translator, one_by_one):
    prefixes = ["eins zwei" if n % 2 else "" for n in range(len(LINES))]
    found = translator.translate_window(LINES, 2, prefixes=prefixes)
    for line, prefix, alone, each in zip(
        LINES, prefixes, one_by_one, found, strict=True
    ):
        if not line or not prefix:
            assert_same([each], [alone])
        else:
            assert each.text.startswith("eins zwei")
            # What is forced is not more probable than what was found freely.
            assert each.text == alone.text or each.score < alone.score


def test_ids_of_numpy_are_translated_as_those_of_tensorflow(model, tokenizer):
    translator = Translator(model, tokenizer, DecodingConfig(beam_size=1))
    inputs = translator.encode(tf.constant(["one two"]))
    found = translator.translate_ids(inputs.numpy())
    for one, other in zip(found, translator.translate_ids(inputs), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_lengths_and_repetitions_are_as_the_search_says(model, tokenizer, beam_size):
    inputs = tokenizer.encode(tf.constant(["one two", "ten nine eight"])).to_tensor()

    def found(**settings):
        search = DecodingConfig(beam_size, extra_length=20, min_length=15, **settings)
        translator = Translator(model, tokenizer, search)
        ids, _ = translator.translate_ids(inputs)
        return [[n for n in row if n] for row in ids.numpy()[:, 0].tolist()]

    free, new = found(), found(no_repeat_ngram=1)
    assert min(map(len, free + new)) >= 15
    assert any(len(set(row)) < len(row) for row in free)
    assert all(len(set(row)) == len(row) for row in new)


@pytest.mark.medium
def test_samples_depend_on_the_seed_and_their_sentence_alone(model, tokenizer):
    def drawn(lines, batch_size=32, seed=0):
        search = DecodingConfig(nbest=3, extra_length=3, sampling=Sampling(seed=seed))
        translator = Translator(model, tokenizer, search)
        return translator.translate_window(lines, batch_size)

    found = drawn(LINES)
    assert_same(drawn(LINES[::-1], batch_size=2)[::-1], found)
    texts = {text for each in found for text in (each.text, *texts_of(each.others))}
    assert len(texts) > 2 * len(LINES)
    assert [each.text for each in drawn(LINES, seed=1)] != [each.text for each in found]
    assert found[LINES.index("")] == Translation("", 0.0, 0, 0.0, False)


def texts_of(hypotheses):
    return [each.text for each in hypotheses]


@pytest.mark.medium
def test_several_models_translate_as_one(model, tokenizer, one_by_one):
    """Twice the same model is that model; another one changes what is found."""
    same = Translator([model, model], tokenizer, SEARCH)
    assert_same(list(same.translate_lines(LINES)), one_by_one)
    other = Translator([model, tiny.random_model(seed=2)], tokenizer, SEARCH)
    assert texts_of(other.translate_lines(LINES)) != texts_of(one_by_one)
    assert same.fingerprint() != other.fingerprint()
