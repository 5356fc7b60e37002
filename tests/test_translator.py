"""Text to text: order, blank lines, batches, and the same result in the graph."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro import translator as translator_module
from t2t_repro.data.tokenizers import load_tokenizer
from t2t_repro.data.vocabulary import build_vocabulary
from t2t_repro.decoding.beam_search import BeamSearchResult
from t2t_repro.hparams import HParams
from t2t_repro.models.transformer import Transformer
from t2t_repro.translator import BLANK, MOST_CHARACTERS, Translator, windows
from tests import tiny

VOCAB_SIZE = 300
LINES = [source for source, _ in tiny.pairs("test")] + ["ten", "", "one two " * 4]
# No-break space, line separator and ideographic space are spaces to Python, too.
BLANKS = ["", " ", "\t \x0b", "\u00a0", "\u2028", "\u3000 "]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.model"
    lines = itertools.chain.from_iterable(tiny.pairs("train"))
    build_vocabulary("sentencepiece", lines, VOCAB_SIZE, path)
    return load_tokenizer(path)


@pytest.fixture(scope="module")
def model():
    """Random weights, large enough that no two translations are nearly equal."""
    made = Transformer(HParams(d_model=16, d_ff=32, num_heads=2, num_layers=1), 300)
    made.build()
    generator = np.random.default_rng(1)
    for variable in made.trainable_variables:
        variable.assign(variable + generator.normal(0, 0.3, variable.shape))
    return made


@pytest.fixture(scope="module")
def translator(model, tokenizer):
    return Translator(model, tokenizer, beam_size=3, extra_length=3)


@pytest.fixture(scope="module")
def nbest(translator):
    """The translations of every line as lists of two and of three."""
    return {
        n: list(
            translator.searching(n, tensor2tensor_rules=False).translate_lines(LINES)
        )
        for n in (2, 3)
    }


@pytest.fixture(scope="module")
def short(model, tokenizer):
    """A translator that reads three subwords and EOS."""
    settings = {"beam_size": 1, "extra_length": 1, "max_input_length": 4}
    return Translator(model, tokenizer, **settings)


def spelling(model, tokenizer, text):
    """A translator of a model that can only say the first symbol of a text."""
    translator = Translator(model, tokenizer, beam_size=1, extra_length=1)
    symbol = next(n for n in range(VOCAB_SIZE) if decoded(tokenizer, n) == text)
    row = np.full((1, 1, 3), symbol, np.int32)
    row[0, 0, 1] = 10
    translator.translate_ids = lambda inputs: (
        tf.repeat(tf.constant(row), tf.shape(inputs)[0], axis=0),
        tf.zeros([tf.shape(inputs)[0], 1]),
    )
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
    found = translator.translate_lines(LINES, 2, window=4, progress=told.append)
    assert_same(list(found), one_by_one)
    assert sum(told) == len(LINES)


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


def test_the_graph_translates_strings_as_lists_of_lines_are(translator, one_by_one):
    texts, scores = translator.translate(tf.constant(LINES))
    assert [text.decode() for text in texts.numpy()] == [f.text for f in one_by_one]
    np.testing.assert_allclose(scores, [f.score for f in one_by_one], atol=1e-4)
    texts, scores = translator.translate(tf.constant([], tf.string))
    assert texts.shape == scores.shape == (0,)


def test_blank_lines_become_empty_in_both_ways(translator):
    for found in translator.translate_lines(BLANKS):
        assert found == ("", 0.0, 0, False, ())
    texts, scores = translator.translate(tf.constant(BLANKS))
    assert set(texts.numpy()) == {b""}
    assert set(scores.numpy()) == {0.0}


def test_what_counts_as_blank_is_what_python_calls_space():
    characters = [chr(n) for n in range(0x3100) if not 0xD800 <= n < 0xE000]
    matches = tf.strings.regex_full_match(characters, BLANK).numpy()
    assert [c for c, blank in zip(characters, matches, strict=True) if blank] == [
        c for c in characters if c.isspace()
    ]


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


def test_hypotheses_of_a_list_do_not_depend_on_its_length(nbest):
    for two, three in zip(nbest[2], nbest[3], strict=True):
        assert [other.text for other in two.others] == [
            other.text for other in three.others[:1]
        ]


def test_places_that_no_hypothesis_fills_are_left_out(model, tokenizer):
    translator = Translator(model, tokenizer, beam_size=3, nbest=3)
    ids = tf.constant([[[10, 1], [0, 0], [0, 0]], [[10, 11], [10, 1], [0, 0]]])
    scores = tf.constant([[-0.5, -1e7, -1e7], [-0.25, -0.75, -1e7]])
    translator.translate_ids = lambda inputs: (ids, scores)
    one, two = translator.translate_window(["one", "one"])
    assert (one.score, one.tokens, one.others) == (-0.5, 2, ())
    assert (two.score, two.tokens) == (-0.25, 2)
    assert [(other.score, other.tokens) for other in two.others] == [(-0.75, 2)]


@pytest.mark.parametrize("size", [0, 4])
def test_a_list_holds_at_most_what_the_beam_does(translator, size):
    with pytest.raises(ValueError, match=f"nbest is {size}, must be 1 to 3"):
        translator.searching(size, tensor2tensor_rules=False)


def test_progress_tells_lines_and_tokens(translator):
    told = []
    found = translator.translate_window(LINES, 2, lambda *counts: told.append(counts))
    lines, tokens = zip(*told, strict=True)
    assert sum(lines) == len(LINES)
    assert sum(tokens) == sum(each.tokens for each in found)


def test_a_fingerprint_changes_with_any_weight(model, tokenizer):
    translator = Translator(model, tokenizer)
    before = translator.fingerprint()
    assert before == Translator(model, tokenizer, beam_size=1).fingerprint()
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


def test_an_output_ends_at_its_own_input_length_and_the_extra(
    model, tokenizer, monkeypatch
):
    def limits(decoder, state, *, max_lengths, **settings):
        scores = tf.cast(max_lengths, tf.float32)[:, None]
        return BeamSearchResult(ids=max_lengths[:, None, None], scores=scores)

    monkeypatch.setattr(translator_module, "beam_search", limits)
    translator = Translator(model, tokenizer, beam_size=1, extra_length=2)
    _, found = translator.translate_ids(tf.constant([[5, 6, 7, 1], [5, 1, 0, 0]]))
    assert found.numpy().tolist() == [[4 + 2], [2 + 2]]


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
    ids = np.random.default_rng(4).integers(2, VOCAB_SIZE, (200, 12), np.int32)
    for text in translator.decode(tf.constant(ids)).numpy():
        assert "\n" not in text.decode("utf-8")
