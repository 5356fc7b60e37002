"""Tests of placeholders, which translations keep."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.system.errors import UserError
from t2t_repro.texts.insertion import _Links, insert
from t2t_repro.texts.pipeline import Pipeline
from t2t_repro.texts.placeholder_patterns import find
from t2t_repro.texts.placeholders import Placeholders
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.token_spans import WORD
from t2t_repro.tokenizers.vocabulary import build_vocabulary
from t2t_repro.translation.alignments import Aligner
from t2t_repro.translation.translator import Translator
from tests import tiny
from tests.properties import checked

ALL = Placeholders(["all"])


@pytest.mark.parametrize(
    ("preset", "text", "expected"),
    [
        (
            "braces",
            "{0} {name} {} {x:.2f} {{y}} ${z} {{{w}}} {n, plural, one {#}} {",
            "{0} {name} {} {x:.2f} {{y}} ${z} {{{w}}} {n, plural, one {#}}",
        ),
        (
            "printf",
            "%s %(x.y)d %1$s %-5.2f %% 100% of %lld",
            "%s %(x.y)d %1$s %-5.2f %% %lld",
        ),
        ("braces", "%{count} dogs", "%{count}"),
        ("printf", "%<x>.2f 50%off 100%cotton 100%% %d%d", "%<x>.2f %% %d %d"),
        (
            "tags",
            'a < b <b>x</b> <br/> <a href="x>y"> 1 > 0',
            '<b> </b> <br/> <a href="x>y">',
        ),
        ("urls", "(https://a.org/b_(c), www.d.de).", "https://a.org/b_(c) www.d.de"),
        ("emails", "Mail to <a.b-c@d-e.co.uk>, or @me.", "a.b-c@d-e.co.uk"),
        ("urls", "\u898bhttps://a.org/b\u3002\u4f60\u597d\u3002", "https://a.org/b"),
        (r"\d+", "1 of 23", "1 23"),
        (r"\s*\d\s*", "1 of 2 ", "1 2"),
        # Characters that the look-around needs become a part of the placeholder.
        (r"(?<=@)\w+", "Hi @me, @you.", "@me @you"),
        (r"(?<=\[\[)\w+(?=\]\])", "[[a]] of ([[b]])", "[[a]] [[b]]"),
        (r"\w+(?=:)", "One: two", "One:"),
        (r"\w+(?= of)", "one of two", "one"),
    ],
)
def test_presets_and_expressions_find_placeholders(preset, text, expected):
    spans = Placeholders([preset]).find(text)
    assert " ".join(text[start:end] for start, end in spans) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (r"(?<=i)\d", (8, 10)),
        (r"(?<=bcdefghi)\d", (1, 10)),
        (r"(?<=abcdefghi)\d", (9, 10)),
        (r"\d(?=jklmnopq)", (9, 18)),
    ],
)
def test_look_around_adds_up_to_eight_characters(expression, expected):
    assert [*find(re.compile(expression), "abcdefghi7jklmnopqr")] == [expected]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("one <b>two</b> three", [1, 2]),
        # An opening tag within a word precedes it, and a closing one follows it.
        ("ab<b>cd</b>ef gh", [0, 1]),
        ("a b<b>c</b>d", [1, 2]),
    ],
)
def test_number_of_words_before_a_tag(line, words):
    assert [each.word for each in ALL.remove(line).placeholders] == words


@pytest.mark.parametrize("pairs", [set(), {(0, 0)}])
def test_words_without_alignment_have_their_share_of_the_translation(pairs):
    links = _Links(["one", "two"], ["a", "b", "c", "d"], pairs)
    assert links.span(1, 2) == (2, 4)


def test_the_only_word_without_alignment_is_the_whole_translation():
    assert _Links(["one"], ["a", "b", "c"], set()).span(0, 1) == (0, 3)


def test_the_longest_of_overlapping_matches_is_kept():
    text = '<a href="https://a.org/{0}">'
    assert ALL.find(text) == [(0, len(text))]


@pytest.mark.parametrize(
    ("line", "rest"),
    [
        ("A man {0} is here.", "A man is here."),
        ("{0} dogs {1}, and cats {2}.", "dogs, and cats."),
        ("A <b>red dog</b> (%s) runs", "A red dog runs"),
        ("Hello<br>World", "Hello World"),
        ("un<b>believ</b>able", "unbelievable"),
        ("two  spaces {0}", "two  spaces"),
        ("\u6211{0}\u4eec", "\u6211\u4eec"),
        ("<b>{0}</b>: %s", ""),
        ("no placeholder ", "no placeholder "),
    ],
)
def test_the_rest_of_a_line_is_a_normal_line(line, rest):
    assert ALL.remove(line).text == rest


ZIP = {(0, 0), (1, 1)}
SWAP = {(0, 1), (1, 0)}


@pytest.mark.parametrize(
    ("line", "translation", "pairs", "expected"),
    [
        # Placeholders remain at both ends of a line, and before its final mark.
        ("{0} one two {1}", "eins zwei", ZIP, "{0} eins zwei {1}"),
        ("one two. {0}", "eins zwei.", ZIP, "eins zwei. {0}"),
        ("one two {0}.", "zwei eins.", SWAP, "zwei eins {0}."),
        # They follow the words around them.
        ("one {0} two three", "drei eins zwei", {(0, 1), (1, 2), (2, 0)},
         "drei eins {0} zwei"),
        ("one {0} two {1} three", "drei zwei eins", {(0, 2), (1, 1), (2, 0)},
         "drei {1} zwei {0} eins"),
        # Spaces are those of the source.
        ("one {n}px", "px eins", SWAP, "{n}px eins"),
        ("Hello<br>World", "Hallo Welt", ZIP, "Hallo<br>Welt"),
        ("one {0}{1} two", "eins zwei", ZIP, "eins {0}{1} zwei"),
        ('say "{0}" now', "sag nun", ZIP, 'sag "{0}" nun'),
        ("one {0} two", "\u4e00\u4e8c", ZIP, "\u4e00{0}\u4e8c"),
        ("one two<br/>", "zwei eins", SWAP, "zwei eins<br/>"),
        ("{0}one two", "zwei eins", SWAP, "{0}zwei eins"),
        ("one two</i>%s.", "zwei eins.", SWAP, "zwei eins</i>%s."),
        ("one two {0}", "\u4e00\u4e8c", SWAP, "\u4e00\u4e8c{0}"),
        ("one two.  {0}", "zwei eins.", SWAP, "zwei eins.  {0}"),
        ("{0} one two", '"zwei" eins', SWAP, '{0} "zwei" eins'),
        ("one two. <b></b>", "zwei eins.", SWAP, "zwei eins. <b></b>"),
        # A placeholder is not attached to a word if the mark between them is lost.
        ("{0}: one", "eins", {(1, 0)}, "{0} eins"),
        # Tags enclose the translations of their words.
        ("<b>one</b> two", "zwei eins", SWAP, "zwei <b>eins</b>"),
        ("one <b>two <i>three</i></b> four", "vier drei zwei eins",
         {(0, 3), (1, 2), (2, 1), (3, 0)}, "vier <b><i>drei</i> zwei</b> eins"),
        ("<b>one</b> <i>two</i>", "eins", {(0, 0), (1, 0)}, "<b>eins</b> <i></i>"),
        ("one <b>{0}</b> two", "eins zwei", ZIP, "eins <b>{0}</b> zwei"),
        # Arguments without a number remain in order.
        ("%s one %d two", "zwei eins", SWAP, "%s zwei %d eins"),
        ("one %1$s two %2$d", "zwei eins", SWAP, "zwei %1$s eins %2$d"),
        ("one %{x} two %<y>d three", "drei zwei eins", {(0, 2), (1, 1), (2, 0)},
         "drei %<y>d zwei %{x} eins"),
        # Without an alignment, positions are proportional.
        ("one two {0} three four", "a b c d e f g h", set(), "a b c d {0} e f g h"),
        ("{0} one {1}", "", set(), "{0} {1}"),
    ],
)  # fmt: skip
def test_placeholders_follow_the_alignment(line, translation, pairs, expected):
    source, placeholders = ALL.remove(line)
    assert insert(placeholders, source, translation, pairs) == expected


def test_neighbors_do_not_change_a_placeholder():
    urls = Placeholders([r"https?://\S+"])
    line = "see https://a.org/b now."
    source, placeholders = removed = urls.remove(line)
    assert insert(placeholders, source, "nun.", {(1, 0)}) == "https://a.org/b nun."
    # The full stop would become a part of the URL.
    assert insert(placeholders, source, "Sieh.", {(0, 0)}) == "Sieh https://a.org/b."
    text = urls._insert(line, removed, "Sieh.", {(0, 0)})
    assert text == "Sieh https://a.org/b ."


PIECES = st.sampled_from(
    [*"ab. ,(", "one ", "{0}", "%s", "<b>", "</b>", "<i>", "</i>", "<br/>", "x@y.z "]
)


def rest_of(text):
    """Returns a text without placeholders and spaces."""
    for start, end in reversed(ALL.find(text)):
        text = text[:start] + text[end:]
    return "".join(text.split())


@checked
@given(st.lists(PIECES, max_size=14), st.text("ab ,.(\u4e00", max_size=12), st.data())
def test_placeholders_of_any_line_are_kept(pieces, translation, data):
    line = "".join(pieces)
    source, placeholders = removed = ALL.remove(line)
    words, target = re.findall(WORD, source), re.findall(WORD, translation)
    pairs = set()
    if words and target:
        pair = st.tuples(*(st.integers(0, len(side) - 1) for side in (words, target)))
        pairs = data.draw(st.sets(pair, max_size=8))
    text = ALL._insert(line, removed, translation, pairs)
    assert Counter(ALL._texts(text)) == Counter(ALL._texts(line))
    assert rest_of(text) == "".join(translation.split())
    tags = re.findall("<(/?)([bi])>", text)
    if len(tags) == sum(each.partner is not None for each in placeholders):
        opened = []
        for closes, name in tags:
            if closes:
                assert opened.pop() == name
            else:
                opened.append(name)
        assert not opened


def test_long_lines_are_not_a_problem():
    for line in ("<b>" * 3000 + "x" + "</b>" * 3000, "a" * 60_000, "{0}, " * 3000):
        removed = ALL.remove(line)
        text = ALL._insert(line, removed, removed.text, set())
        assert ALL._texts(text) == ALL._texts(line)


@pytest.mark.medium
def test_translations_are_those_of_the_bare_lines(tmp_path):
    """A model of word pieces; `test_trained_model` has one of SentencePiece."""
    vocabulary = tmp_path / "vocab.subwords"
    lines = [side for pair in tiny.pairs("train") for side in pair]
    build_vocabulary("wordpiece", lines, 120, vocabulary)
    model, tokenizer = tiny.random_model(), load_tokenizer(vocabulary)
    search = DecodingConfig(beam_size=3, extra_length=5, nbest=2)
    translator = Translator(model, tokenizer, search)
    pipeline = Pipeline(translator, ALL, Aligner(model, tokenizer).pairs)
    lines = ["one {0} two", "{0}", "", "<b>three</b> four %s", "five", "%s: %d"]
    bare = ["one two", "", "", "three four", "five", ""]
    results = pipeline.translate_window(lines)
    plain_results = translator.translate_window(bare)
    for line, rest, result, plain in zip(
        lines, bare, results, plain_results, strict=True
    ):
        if not rest:
            assert result.text == line
            continue
        both = zip(result.hypotheses, plain.hypotheses, strict=True)
        for hypothesis, expected in both:
            assert ALL._texts(hypothesis.text) == ALL._texts(line)
            assert rest_of(hypothesis.text) == "".join(expected.text.split())
            assert hypothesis.score == pytest.approx(expected.score, abs=1e-4)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(", "'(' is not a valid regular expression: missing )"),
        ("", "'' matches the empty text"),
        ("x*", "'x*' matches the empty text"),
        (r"\b", "matches the empty text"),
        (
            "tag",
            "unknown preset 'tag'; choose one of braces, printf, tags, urls, emails,",
        ),
    ],
)
def test_rejects_expressions_that_find_no_text(pattern, message):
    with pytest.raises(UserError, match=re.escape(message)):
        Placeholders([pattern])
