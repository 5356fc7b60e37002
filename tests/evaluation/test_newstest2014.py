"""Tests of Google's version of newstest2014's German reference."""

import unicodedata

import pytest

from t2t_repro.evaluation.bleu import moses_tokens, multi_bleu, paper_bleu
from t2t_repro.evaluation.newstest2014 import replace_quotes
from t2t_repro.system.atomic_file import read_lines


@pytest.fixture(scope="module")
def newstest(shared_dir):
    return shared_dir / "corpora/wmt_newstest/en-de"


@pytest.fixture(scope="module")
def reference(newstest):
    return read_lines(newstest / "newstest2014-deen.de")


def with_straight_quotes(line):
    """Replaces every character with "QUOTATION MARK" in its Unicode name."""
    return "".join('"' if "QUOTATION MARK" in unicodedata.name(c) else c for c in line)


def test_every_quotation_mark_becomes_ascii(reference):
    lines = replace_quotes(reference)
    assert lines == [with_straight_quotes(line) for line in reference]
    # Both numbers were counted with grep -c.
    changed = [old for old, new in zip(reference, lines, strict=True) if old != new]
    assert len(changed) == 306
    assert sum("„" in line for line in changed) == 304


def test_copy_with_ascii_quotes_is_a_perfect_translation(reference):
    copy = [with_straight_quotes(line) for line in reference]
    result = paper_bleu(copy, reference, "de")
    assert result.score == pytest.approx(100)
    assert "|punct:ascii|refquotes:ascii|tok:moses-de-" in result.signature
    # Against the official reference only the low quotes differ, because Moses converts
    # the other double quotes to ASCII.
    assert result.original_quotes.score < 99
    assert "refquotes" not in result.original_quotes.signature


def test_official_reference_is_not_a_perfect_translation(reference):
    result = paper_bleu(reference, reference, "de")
    assert result.score < 99
    assert result.original_quotes.score == pytest.approx(100)


def test_recognises_the_reference_with_any_white_space(reference):
    assert replace_quotes([f" {line} \r" for line in reference])
    assert replace_quotes([line.replace(" ", "  ") for line in reference])


def test_recognises_no_other_reference(reference, newstest):
    # The 2,737 lines of sacreBLEU's `wmt14`.
    numbers = map(int, read_lines(newstest / "newstest2014-deen.2737.idx"))
    subset = [reference[number] for number in numbers]
    assert len(subset) == 2737
    for lines in (
        subset,
        reference[::-1],
        [*reference[:-1], "Ende"],
        read_lines(newstest / "newstest2014-deen.en"),
        read_lines(newstest / "newstest2013.de"),
    ):
        assert replace_quotes(lines) is None


@pytest.mark.medium
def test_multiple_references_and_other_languages_keep_their_quotes(reference):
    copy = [with_straight_quotes(line) for line in reference]
    tokens, second = (
        moses_tokens(lines, "de", split_compounds=True) for lines in (reference, copy)
    )
    several = paper_bleu(reference, reference, "de", [copy])
    assert several.score == multi_bleu(tokens, tokens, second).score
    for result in (several, paper_bleu(reference, reference, "en")):
        assert "refquotes" not in result.signature
        assert result.original_quotes is None
