"""Tests of translating texts of several sentences with a fake translator."""

from t2t_repro.translation import text_translator
from t2t_repro.translation.text_translator import TextTranslator
from t2t_repro.translation.translator import Translation
from tests.translation.test_sentences import splitter


class Upper:
    """Fake translator that upper-cases sentences, each with its length as tokens."""

    search = None
    max_input_length = 20

    def __init__(self):
        self.lines = []

    def fingerprint(self):
        return "upper"

    def translate_window(self, lines, batch_size, progress):
        self.lines += lines
        for line in lines:
            progress(1, len(line))
        return [
            Translation(line.upper(), -len(line), len(line), -2.0 * len(line), False)
            for line in lines
        ]


def translated(texts, every=True):
    upper, calls = Upper(), []
    translator = TextTranslator(upper, splitter(longest=20), every)
    translations = translator.translate_window(texts, 2, lambda *n: calls.append(n))
    assert sum(lines for lines, _ in calls) == len(texts)
    return translations, upper.lines


def test_texts_keep_their_separators():
    texts = [" One two.  Three.\r\n\r\nfour\t", "", "  ", "One."]
    translations, lines = translated(texts)
    assert [each.text for each in translations] == [text.upper() for text in texts]
    assert [line for line in lines if line] == ["One two.", "Three.", "four", "One."]
    first, empty, blank, last = translations
    # Sums of 8, 6 and 4 characters, and the mean of the scores.
    assert first[1:5] == (-6, 18, -36, False)
    assert empty[1:5] == blank[1:5] == (0, 0, 0, False)
    assert last[1:5] == (-4, 4, -8, False)
    assert not any(each.divided for each in translations)


def test_only_long_lines_are_divided_by_default():
    texts = ["One. Two.\nThree. Four.", "One. Two. Three. Four. Five.", "x " * 12]
    translations, lines = translated(texts, every=False)
    assert [each.text for each in translations] == [text.upper() for text in texts]
    assert lines[:2] == ["One. Two.", "Three. Four."]
    assert lines[2:7] == ["One.", "Two.", "Three.", "Four.", "Five."]
    assert [each.divided for each in translations] == [False, True, True]
    translations, lines = translated(["One. Two.", " "], every=False)
    assert lines == ["One. Two.", " "]


def test_texts_beyond_the_limit_are_cut_and_marked(monkeypatch):
    monkeypatch.setattr(text_translator, "MOST_TEXT_CHARACTERS", 8)
    translations, _ = translated(["One. Two", "One. Two."])
    assert [each.text for each in translations] == ["ONE. TWO"] * 2
    assert [each.cut for each in translations] == [False, True]


def test_the_fingerprint_depends_on_the_division():
    prints = {
        TextTranslator(Upper(), splitter(), every).fingerprint()
        for every in (False, True)
    }
    assert len(prints) == 2
