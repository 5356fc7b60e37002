"""Tests of lexical constraints: the file of terms, and translations with terms."""

import re

import pytest
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.system.errors import UserError
from t2t_repro.texts.pipeline import Pipeline
from t2t_repro.texts.placeholders import Placeholders
from t2t_repro.texts.terms import RequiredTerms, read_terms
from t2t_repro.translation.translator import Translator
from tests import tiny

LINES = [source for source, _ in tiny.pairs("test")]
LINES += ["", "one", "nine one nine", "nobody asks", "seven eight"]
TERMS = {"one": "acht", "three four": "fünf zehn", "three": "vier", "nine": "sechs"}


@pytest.fixture(scope="module", params=["tokenizer", "word_pieces"])
def translator(request, tokenizer, tmp_path_factory):
    if request.param == "word_pieces":
        from t2t_repro.tokenizers.load import load_tokenizer
        from t2t_repro.tokenizers.vocabulary import build_vocabulary

        path = tmp_path_factory.mktemp("vocabulary") / "vocab.subwords"
        lines = [side for pair in tiny.pairs("train") for side in pair]
        build_vocabulary("wordpiece", lines, 120, path)
        tokenizer = load_tokenizer(path)
    search = DecodingConfig(beam_size=6, extra_length=20, nbest=2)
    return Translator(tiny.random_model(), tokenizer, search)


def translate(translator, terms, lines):
    pipeline = Pipeline(translator, Placeholders(()), None, terms)
    return pipeline.translate_window(lines, batch_size=4)


@pytest.mark.medium
def test_only_lines_with_terms_are_constrained(translator):
    constrained = RequiredTerms(TERMS, translator.spell_terms)
    translations = translate(translator, constrained, LINES)
    plain = translator.translate_window(LINES, batch_size=4)
    needed = 0
    for line, with_terms, without in zip(LINES, translations, plain, strict=True):
        # The two-word term has priority over its words.
        words = re.findall("three four|one|three|nine", line)
        required = {TERMS[word] for word in words}
        needed += len(required)
        for each in with_terms.hypotheses:
            assert all(re.search(rf"\b{term}\b", each.text) for term in required)
        if not required:
            assert with_terms.text == without.text
            assert abs(with_terms.score - without.score) < 1e-4
    assert constrained.needed == constrained.met == needed > 5
    num_missing = sum(
        not re.search(rf"\b{term}\b", each.text)
        for terms, each in zip(constrained.find_terms(LINES), plain, strict=True)
        for term in terms
    )
    assert num_missing > 0


@pytest.mark.medium
def test_placeholders_stand_as_words(translator):
    terms = ["{0}", "%s", "C++"]
    lines = [f"one {term} two three" for term in terms]
    constrained = RequiredTerms({term: term for term in terms}, translator.spell_terms)
    translations = translate(translator, constrained, lines)
    for term, each in zip(terms, translations, strict=True):
        assert re.search(rf"(?<![\w.,]){re.escape(term)}(?!\w)", each.text), each
        assert each.text == each.text.strip(" ")
    assert (constrained.met, constrained.unwritable) == (3, [])


def test_terms_outside_of_the_vocabulary_are_not_required(translator, monkeypatch):
    target = translator.tokenizer.target
    unknown = int(target.encode(["sechs"]).values[0])
    monkeypatch.setattr(target, "unknown_id", unknown)
    constrained = RequiredTerms(TERMS, translator.spell_terms)
    assert constrained.unwritable == ["sechs"]
    # A repeated term is required once.
    ids = translator.encode_terms(tf.constant([["sechs", "acht", "acht"]])).numpy()
    assert (ids.any(axis=2) == [[False, True, False]]).all()
    # An empty list of terms is a missing term of one token.
    empty = translator.encode_terms(tf.constant([], tf.string, [2, 0]))
    assert (empty.numpy() == [[[0]], [[0]]]).all()


def test_source_terms_match_whole_words():
    terms = {"hot dog": "Wurst", "dog": "Hund", "C++": "Zeh", "dogs": "Hund"}
    required = RequiredTerms(terms, lambda targets: {term: term for term in targets})
    lines = ["A dog, a hot  dog and dogs.", "hotdog dogged Dog", "C++!"]
    assert required.find_terms(lines) == [["Hund", "Wurst"], [], ["Zeh"]]


def test_the_longer_of_two_overlapping_terms_has_priority():
    terms = RequiredTerms({"hot": "warm", "hot dog": "Wurst"}, lambda targets: {})
    assert terms.find_terms(["a hot dog on a hot day"]) == [["Wurst", "warm"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("dog\tHund\ncat\n", ":2: 'cat' is not a source term"),
        ("dog\tHund\n\n", ":2: '' is not a source term"),
        ("dog\tHund\tTier\n", ":1: "),
        ("dog\t \n", ":1: "),
        ("dog\tHund\ndog\tKöter\n", ":2: the source term 'dog' occurs twice"),
    ],
)
def test_rejects_an_invalid_file_of_terms(tmp_path, text, message):
    path = tmp_path / "terms.tsv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=re.escape(message)) as raised:
        read_terms(path)
    assert str(path) in str(raised.value)


def test_reads_a_file_of_terms(tmp_path):
    path = tmp_path / "terms.tsv"
    path.write_text("hot  dog\t Wurst\ncat\tKatze \n", encoding="utf-8")
    assert read_terms(path) == {"hot dog": "Wurst", "cat": "Katze"}
