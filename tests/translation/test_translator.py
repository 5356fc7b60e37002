"""Tests of the translator from text to text."""

from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig, Sampling
from t2t_repro.fast.searchers import ParallelSearcher
from t2t_repro.models.searcher import Searcher
from t2t_repro.texts.sentences import MOST_CHARACTERS
from t2t_repro.texts.translation import BLANK, Translation
from t2t_repro.translation.translator import Translator
from tests import tiny

SEARCH = DecodingConfig(beam_size=3, extra_length=3)
LINES = [source for source, _ in tiny.pairs("test")] + ["ten", "", "one two " * 4]
# Python also treats no-break, line-separator and ideographic spaces as white space.
BLANKS = ["", " ", "\t \x0b", "\u00a0", "\u2028", "\u3000 "]


@pytest.fixture(scope="module")
def model():
    return tiny.random_model()


@pytest.fixture(scope="module")
def translator(model, tokenizer):
    return Translator(model, tokenizer, SEARCH)


@pytest.fixture(scope="module")
def nbest(model, tokenizer):
    """Returns the translations of every line with nbest 2 and 3."""
    searches = {n: replace(SEARCH, nbest=n) for n in (2, 3)}
    return {
        n: list(Translator(model, tokenizer, search).translate_lines(LINES))
        for n, search in searches.items()
    }


@pytest.fixture(scope="module")
def short(model, tokenizer):
    """Returns a translator that reads three subwords and EOS."""
    search = DecodingConfig(beam_size=1, extra_length=1)
    return Translator(model, tokenizer, search, max_input_length=4)


def spelling(model, tokenizer, text):
    """Returns a translator whose output contains the token with the given text."""
    token = next(n for n in range(tiny.VOCAB_SIZE) if decoded(tokenizer, n) == text)
    row = np.full((1, 1, 3), token, np.int32)
    row[0, 0, 1] = 10
    search = DecodingConfig(beam_size=1, extra_length=1)
    searcher = Answers(model, tokenizer, search, row, np.zeros([1, 1]))
    return Translator(model, tokenizer, search, searcher=searcher)


class Answers(Searcher):
    """A searcher with given results, which stores its batches."""

    def __init__(self, model, tokenizer, search, ids, scores):
        super().__init__([model], tokenizer, search)
        self.found = tf.constant(ids), tf.constant(scores, tf.float32)
        self.batches = []

    def search(self, inputs, prefixes=None, terms=None):
        self.batches.append(inputs)
        rows = tf.range(tf.shape(inputs)[0])
        return [tf.gather(each, rows % len(each)) for each in self.found]


def decoded(tokenizer, token):
    return tokenizer.decode(tf.constant([[10, token]]))[0].numpy().decode()[1:]


def assert_same(some, others):
    assert [result.text for result in some] == [result.text for result in others]
    np.testing.assert_allclose(
        [result.score for result in some],
        [result.score for result in others],
        atol=1e-4,
    )
    assert [result.best.tokens for result in some] == [
        result.best.tokens for result in others
    ]


@pytest.fixture(scope="module")
def one_by_one(translator):
    return [next(translator.translate_lines([line])) for line in LINES]


@pytest.mark.medium
def test_a_translation_depends_only_on_its_sentence(translator, one_by_one):
    assert len({result.text for result in one_by_one}) > 5
    for batch_size in (2, 5, 32):
        together = list(translator.translate_lines(LINES, batch_size))
        assert_same(together, one_by_one)
    assert_same(list(translator.translate_lines(LINES[::-1]))[::-1], one_by_one)


def test_windows_and_progress_cover_every_line_in_order(translator, one_by_one):
    counts = []
    result = translator.translate_lines(
        LINES, 2, window=4, progress=lambda lines, tokens: counts.append(lines)
    )
    assert_same(list(result), one_by_one)
    assert sum(counts) == len(LINES)


@pytest.mark.medium
@pytest.mark.usefixtures("fast_implementations")
def test_parallel_translation_causes_no_retracing_warning(
    model, tokenizer, one_by_one, sixteen_cores
):
    """TensorFlow warns if a function is traced by several threads at once."""
    searcher = ParallelSearcher([model], tokenizer, SEARCH)
    fresh = Translator(model, tokenizer, SEARCH, searcher=searcher)
    result = list(fresh.translate_lines(LINES * 4, batch_size=2))
    assert_same(result, one_by_one * 4)
    assert sixteen_cores.text == ""


def test_every_line_is_tokenized_once(translator, tokenizer, monkeypatch):
    encode, inputs = tokenizer.plain.encode, []

    def record_and_encode(text):
        inputs.append(text)
        return encode(text)

    monkeypatch.setattr(tokenizer.plain, "encode", record_and_encode)
    translator.translate_window(LINES, batch_size=2)
    assert inputs == LINES


def test_yields_a_window_before_reading_the_next(translator):
    read = []

    def lines():
        for line in LINES[:4]:
            read.append(line)
            yield line

    result = translator.translate_lines(lines(), window=2)
    next(result)
    assert len(read) == 2


def test_no_lines_give_no_translations(translator):
    assert list(translator.translate_lines([])) == []


def test_blank_lines_become_empty(translator):
    for result in translator.translate_lines(BLANKS):
        assert result == Translation((BLANK,))


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


def test_reads_only_the_beginning_of_an_endless_line(short):
    beginning = "one two three four " * 4
    line = beginning + "x" * (10 * MOST_CHARACTERS)
    blank = " " * MOST_CHARACTERS + "x"
    result, found_blank, part = short.translate_window([line, blank, beginning])
    assert_same([result], [part])
    assert result.cut
    assert (found_blank.text, found_blank.cut) == ("", True)


@pytest.mark.medium
def test_nbest_does_not_change_the_best_translation(nbest, one_by_one):
    for size, result in nbest.items():
        assert_same(result, one_by_one)
        assert max(len(each.hypotheses) for each in result) == size
        for each in result:
            scores = [hypothesis.score for hypothesis in each.hypotheses]
            assert scores == sorted(scores, reverse=True)
            assert scores[-1] > -1e6
            assert all(other.tokens > 0 for other in each.hypotheses[1:])
        assert result[LINES.index("")].hypotheses == (BLANK,)


def test_scores_are_log_probabilities_over_the_length_penalty(nbest):
    """Wu et al. 2016, equation 14: ((5 + length) / 6)^alpha."""
    for translation in nbest[3]:
        for each in translation.hypotheses:
            penalty = ((5 + each.tokens) / 6) ** 0.6
            assert each.log_prob == pytest.approx(each.score * penalty, rel=1e-6)


def test_tensor2tensor_rules_use_the_batches_of_tensor2tensor(model, tokenizer):
    """Texts are stripped and sorted by number of words; all cores share a batch."""
    search = replace(SEARCH, tensor2tensor_rules=True)
    answers = Answers(model, tokenizer, search, [[[10, 1]]], [[0.0]])
    translator = Translator(model, tokenizer, search, searcher=answers)
    lines = ["seventeen", " one two ", "", "ten", "a b c", "two one", "x"]
    translator.translate_window(lines, batch_size=2)
    batches = [translator.decode(ids).numpy().tolist() for ids in answers.batches]
    assert batches == [
        [b"a b c", b"one two"],
        [b"two one", b"seventeen"],
        [b"ten", b"x"],
    ]


def test_unfinished_hypotheses_have_no_length_penalty(model, tokenizer):
    """As in tensor2tensor's beam_search.py:beam_search if no hypothesis is finished."""
    search = DecodingConfig(beam_size=1, extra_length=0, tensor2tensor_rules=True)
    translator = Translator(model, tokenizer, search)
    finished = []
    for line in filter(None, map(str.strip, LINES)):
        ids, scores = translator.translate_ids(translator.encode(tf.constant([line])))
        finished.append(1 in ids.numpy())
        (result,) = translator.translate_lines([line])
        penalty = ((5 + result.best.tokens) / 6) ** 0.6 if finished[-1] else 1.0
        assert result.best.log_prob == pytest.approx(scores.numpy().item() * penalty)
    assert not all(finished)


def test_hypotheses_do_not_depend_on_nbest(nbest):
    for two, three in zip(nbest[2], nbest[3], strict=True):
        assert texts_of(two.hypotheses) == texts_of(three.hypotheses[:2])


def test_omits_missing_hypotheses(model, tokenizer):
    search = DecodingConfig(beam_size=3, nbest=3)
    ids = [[[10, 1], [0, 0], [0, 0]], [[10, 11], [10, 1], [0, 0]]]
    scores = [[-0.5, -1e7, -1e7], [-0.25, -0.75, -1e7]]
    answers = Answers(model, tokenizer, search, ids, scores)
    translator = Translator(model, tokenizer, search, searcher=answers)
    one, two = translator.translate_window(["one", "one"])
    assert [each[1:3] for each in one.hypotheses] == [(-0.5, 2)]
    assert [each[1:3] for each in two.hypotheses] == [(-0.25, 2), (-0.75, 2)]


def test_progress_reports_lines_and_tokens(translator):
    calls = []
    result = translator.translate_window(LINES, 2, lambda *counts: calls.append(counts))
    lines, tokens = zip(*calls, strict=True)
    assert sum(lines) == len(LINES)
    assert sum(tokens) == sum(each.best.tokens for each in result)


def test_a_fingerprint_changes_with_any_weight(model, tokenizer):
    translator = Translator(model, tokenizer)
    before = translator.fingerprint()
    greedy = Translator(model, tokenizer, DecodingConfig(beam_size=1))
    assert before == greedy.fingerprint()
    variable = model.trainable_variables[-1]
    original = variable.numpy()
    changed = original.copy()
    changed.flat[-1] += 1
    try:
        variable.assign(changed)
        assert translator.fingerprint() != before
    finally:
        variable.assign(original)
    assert translator.fingerprint() == before


@pytest.mark.parametrize("line_break", ["\n", "\r"])
def test_line_breaks_in_the_output_become_spaces(model, tokenizer, line_break):
    """Otherwise one input line would give two output lines."""
    translator = spelling(model, tokenizer, line_break)
    (result,) = translator.translate_lines(["one"])
    assert result.text.splitlines() == [result.text]
    assert " " in result.text


def test_every_sequence_of_tokens_gives_valid_utf8(translator):
    """A model can output byte pieces in any order; most orders are invalid UTF-8."""
    ids = np.random.default_rng(4).integers(2, tiny.VOCAB_SIZE, (200, 12), np.int32)
    for text in translator.decode(tf.constant(ids)).numpy():
        assert "\n" not in text.decode("utf-8")


@pytest.mark.medium
def test_translations_begin_with_their_prefixes(translator, one_by_one):
    prefixes = ["eins zwei" if n % 2 else "" for n in range(len(LINES))]
    result = translator.translate_window(LINES, 2, prefixes=prefixes)
    for line, prefix, free, each in zip(
        LINES, prefixes, one_by_one, result, strict=True
    ):
        if not line or not prefix:
            assert_same([each], [free])
        else:
            assert each.text.startswith("eins zwei")
            # A forced prefix cannot make a translation more probable.
            assert each.text == free.text or each.score < free.score


def test_translates_ids_from_numpy_and_tensorflow(short):
    inputs = short.encode(tf.constant(["one two"]))
    result = short.translate_ids(inputs.numpy())
    for one, other in zip(result, short.translate_ids(inputs), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.medium
def test_min_length_and_no_repeat_ngram_are_respected(model, tokenizer):
    inputs = tokenizer.encode(tf.constant(["one two", "ten nine eight"])).to_tensor()

    def token_ids(**settings):
        search = DecodingConfig(3, extra_length=20, min_length=15, **settings)
        translator = Translator(model, tokenizer, search)
        ids, _ = translator.translate_ids(inputs)
        return [[n for n in row if n] for row in ids.numpy()[:, 0].tolist()]

    free, new = token_ids(), token_ids(no_repeat_ngram=1)
    assert min(map(len, free + new)) >= 15
    assert any(len(set(row)) < len(row) for row in free)
    assert all(len(set(row)) == len(row) for row in new)


@pytest.mark.medium
def test_samples_depend_only_on_the_seed_and_the_sentence(model, tokenizer):
    settings = [{"nbest": 3, "sampling": Sampling(seed=seed)} for seed in range(2)]
    first, other = (
        Translator(model, tokenizer, replace(SEARCH, **each)) for each in settings
    )
    result = first.translate_window(LINES)
    assert_same(first.translate_window(LINES[::-1], batch_size=2)[::-1], result)
    texts = {text for each in result for text in texts_of(each.hypotheses)}
    assert len(texts) > 2 * len(LINES)
    assert texts_of(other.translate_window(LINES)) != texts_of(result)
    assert result[LINES.index("")] == Translation((BLANK,))


def texts_of(hypotheses):
    return [each.text for each in hypotheses]


@pytest.mark.medium
def test_several_models_translate_as_an_ensemble(model, tokenizer, one_by_one):
    """Two copies of a model equal the model; its fingerprint has all members."""
    same = Translator([model, model], tokenizer, SEARCH)
    assert_same(list(same.translate_lines(LINES)), one_by_one)
    other = Translator([model, tiny.random_model(seed=2)], tokenizer, SEARCH)
    assert same.fingerprint() != other.fingerprint()
