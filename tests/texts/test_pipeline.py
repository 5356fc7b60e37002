"""Tests of translating texts of several sentences with a fake translator of lines."""

import re

import tensorflow as tf

from t2t_repro.texts import division
from t2t_repro.texts.division import Division
from t2t_repro.texts.pipeline import Pipeline
from t2t_repro.texts.placeholders import Placeholders
from t2t_repro.texts.sentences import SentenceSplitter
from t2t_repro.texts.translation import Hypothesis, Translation
from t2t_repro.tokenizers.plain_tokenizer import PlainTokenizer
from tests.data.code_points import CodePoints
from tests.texts.test_sentences import Characters, splitter


def align(sources, targets, word):
    """Aligns each word with the word of the same number."""
    counts = [len(re.findall(word, source)) for source in sources]
    return [{(n, n) for n in range(count)} for count in counts]


class Upper:
    """Fake translator that upper-cases sentences, each with its length as tokens."""

    limit = "20 subwords"

    def __init__(self):
        self.lines = []

    def fingerprint(self):
        return "upper"

    def translate_window(self, lines, batch_size, progress):
        self.lines += lines
        for line in lines:
            if progress:
                progress(1, len(line))
        return [
            Translation(
                (Hypothesis(line.upper(), -len(line), len(line), -2.0 * len(line)),)
            )
            for line in lines
        ]


def pipeline_of(upper, every, patterns=(), **more):
    rule = Division(splitter(**more), every)
    return Pipeline(upper, Placeholders(patterns), align, division=rule)


def translated(texts, every=True, patterns=()):
    upper, calls = Upper(), []
    pipeline = pipeline_of(upper, every, patterns, longest=20)
    translations = pipeline.translate_window(texts, 2, lambda *n: calls.append(n))
    assert sum(lines for lines, _ in calls) == len(texts)
    return translations, upper.lines


def test_texts_keep_their_separators():
    texts = [" One two.  Three.\r\n\r\nfour\t", "", "  ", "One."]
    translations, lines = translated(texts)
    assert [each.text for each in translations] == [text.upper() for text in texts]
    assert [line for line in lines if line] == ["One two.", "Three.", "four", "One."]
    first, empty, blank, last = translations
    # Sums of 8, 6 and 4 characters, and the mean of the scores.
    assert first.best[1:4] == (-6, 18, -36)
    assert empty.best[1:4] == blank.best[1:4] == (0, 0, 0)
    assert last.best[1:4] == (-4, 4, -8)
    assert not any(each.cut or each.divided for each in translations)


def test_only_long_lines_are_divided_by_default():
    texts = ["One. Two.\nThree. Four.", "One. Two. Three. Four. Five.", "x " * 12]
    translations, lines = translated(texts, every=False)
    assert [each.text for each in translations] == [text.upper() for text in texts]
    assert lines[:2] == ["One. Two.", "Three. Four."]
    assert lines[2:7] == ["One.", "Two.", "Three.", "Four.", "Five."]
    assert [each.divided for each in translations] == [False, True, True]
    translations, lines = translated(["One. Two.", " "], every=False)
    assert lines == ["One. Two.", " "]


def test_texts_with_several_sentences_in_a_line_are_marked():
    texts = ["One. Two?", "Mr. X is 3. ", "One.\nTwo.", "One. Two.\nThree", "x " * 12]
    several = [each.several for each in translated(texts, every=False)[0]]
    assert several == [True, False, False, True, False]
    several = [each.several for each in translated(texts[:3], every=False)[0]]
    assert several == [True, False, False]
    assert not any(each.several for each in translated(texts)[0])
    assert translated(["一。二。"], every=False)[0][0].several


def test_few_characters_may_have_too_many_subwords():
    tokenizer, upper = Characters(), Upper()
    pieces = tokenizer._to_pieces
    tokenizer._to_pieces = lambda text: tf.concat([pieces(text)] * 33, axis=1)
    side = CodePoints()
    side.encode = lambda text: 33 * [*map(ord, text)]
    tokenizer.make_plain = lambda: PlainTokenizer(side, side)
    rule = Division(SentenceSplitter(tokenizer, 40, "en"), by_sentence=False)
    pipeline = Pipeline(upper, Placeholders([]), align, division=rule)
    (translation,) = pipeline.translate_window(["a b"])
    assert translation.divided
    assert [line for line in upper.lines if line] == ["a", "b"]


def test_texts_beyond_the_limit_are_cut_and_marked(monkeypatch):
    monkeypatch.setattr(division, "MOST_TEXT_CHARACTERS", 8)
    translations, _ = translated(["One. Two", "One. Two."])
    assert [each.text for each in translations] == ["ONE. TWO"] * 2
    assert [each.cut for each in translations] == [False, True]


def test_the_fingerprint_depends_on_the_division():
    prints = [pipeline_of(Upper(), every).fingerprint() for every in (False, True)]
    assert prints == ["upper", "sentences:upper"]


def test_placeholders_are_not_divided():
    texts = [
        'See {a. B} now.  <i title="x. Y">No. Yes.</i>\r\n{0}\tIt is {1. }',
        "<p>One.</p> <p>Two {b.\nC}.</p>\none",
        "{0} two. Mail to a.b@c.de. {1}. {2} is.",
        "plain. Text.",
    ]
    expected = [
        ["SEE {a. B} NOW.", '<i title="x. Y">NO.', "YES.</i>", "{0}", "IT IS {1. }"],
        ["<p>ONE.</p>", "<p>TWO {b.\nC}.</p>", "ONE"],
        ["{0} TWO.", "MAIL TO a.b@c.de.", "{1}.", "{2} IS."],
        ["PLAIN.", "TEXT."],
    ]
    translations, lines = translated(texts, patterns=["all"])
    separators = [["  ", " ", "\r\n", "\t"], [" ", "\n"], [" "] * 3, [" "]]
    for each, sentences, own in zip(translations, expected, separators, strict=True):
        assert each.text == "".join(
            part for pair in zip(sentences, [*own, ""], strict=True) for part in pair
        )
    assert lines[:3] == ["See now.", "No.", "Yes."]


def test_a_copied_sentence_of_placeholders_has_no_label():
    upper = Upper()
    pipeline = pipeline_of(upper, True, ["all"], has_labels=True)
    (result,) = pipeline.translate_window([">>de<< See {0}. {1}. {2}"], 2)
    assert upper.lines[0] == ">>de<< See."
    assert result.text == ">>DE<< SEE {0}. {1}. {2}"


def test_placeholders_do_not_make_a_line_long():
    long = "{" + "x. Y " * 50 + "}"
    translations, lines = translated([f"one {long} two", "a\nb"], False, ["braces"])
    assert [each.text for each in translations] == [f"ONE {long} TWO", "A\nB"]
    assert not any(each.divided or each.cut for each in translations)
    translations, lines = translated([f"One. {long} two."] * 2, False, [r"\n", "all"])
    assert [line for line in lines if line] == ["One. two."] * 2
    translations, _ = translated([f"{long} one " * 9], False, ["braces"])
    assert translations[0].text == f"{long} ONE " * 9
    assert translations[0].divided


def test_a_match_may_depend_on_the_text_around_its_sentence():
    expressions = [r"(?<=\n)\w+", r"\w+(?=\. Two)"]
    (result,), lines = translated(["a one. Two b\nc d"], patterns=expressions)
    assert result.text == "A one. TWO B\nc D"
    assert [line for line in lines if line] == ["a.", "Two b", "d"]


def test_many_models_cause_no_retracing_warning(tensorflow_log):
    """TensorFlow counts the traces of a method for all objects."""
    for _ in range(6):
        rule = Division(SentenceSplitter(Characters(), 20, "en"), by_sentence=True)
        pipeline = Pipeline(Upper(), Placeholders([]), align, division=rule)
        pipeline.translate_window(["One. Two."])
    assert tensorflow_log.text == ""
