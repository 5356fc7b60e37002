"""Tests of PARSEVAL against EVALB's sample and README, and manual counts."""

from __future__ import annotations

import re

import pytest

from t2t_repro.evaluation.parseval import (
    ERROR,
    SKIPPED,
    VALID,
    parseval,
    parseval_files,
)
from t2t_repro.evaluation.parseval_trees import Parameters, read_parameters
from t2t_repro.system.atomic_file import read_lines
from t2t_repro.system.errors import UserError

DOG = "(TOP (S (NP (DT the) (NN dog)) (VP (VBZ barks)) (. .)))"


def score_sentence(gold, test, parameters=None):
    """Returns the counts of one sentence."""
    return parseval([gold], [test], parameters or Parameters()).results[0]


@pytest.fixture(scope="session")
def evalb(shared_dir):
    return shared_dir / "reference_scores/evalb"


@pytest.fixture(scope="session")
def sample(evalb):
    """Report of EVALB's sample, scored with the parameters of the sample."""
    parameters = read_parameters(str(evalb / "sample/sample.prm"))
    folder = evalb / "sample"
    return parseval_files(
        str(folder / "sample.gld"), str(folder / "sample.tst"), parameters
    )


def test_scores_of_the_sample_agree_with_evalb(sample):
    result = sample.all
    assert (result.sentences, result.errors, result.skipped, result.valid) == (
        24,
        5,
        2,
        17,
    )
    assert (result.matched, result.gold_brackets, result.test_brackets) == (86, 98, 95)
    assert (result.words, result.correct_tags) == (108, 106)
    figures = (result.recall, result.precision, result.complete_match, result.tagging)
    assert [round(figure, 2) for figure in figures] == [87.76, 90.53, 52.94, 98.15]


def test_scores_of_short_sentences_agree_with_evalb(sample):
    result = sample.short
    assert sample.cutoff == 40
    assert (result.sentences, result.errors, result.skipped, result.valid) == (
        23,
        5,
        2,
        16,
    )
    figures = (result.recall, result.precision, result.complete_match, result.tagging)
    assert [round(figure, 2) for figure in figures] == [81.25, 85.25, 50.00, 96.88]


def test_counts_of_each_sentence_agree_with_evalb(sample, evalb):
    rows = [
        [int(number) for number in re.findall(r"(?<![\d.])\d+(?![\d.])", line)]
        for line in read_lines(evalb / "sample/sample.rsl")
        if re.match(r" +\d+ +\d+ +[012] ", line)
    ]
    assert len(rows) == 24
    status = {0: VALID, 1: ERROR, 2: SKIPPED}
    for (_, length, code, *counts), result in zip(rows, sample.results, strict=True):
        assert (result.length, result.status) == (length, status[code])
        if code == 0:
            matched, gold, test, _crossing, words, tags = counts
            brackets = result.gold_brackets, result.test_brackets
            assert (result.matched, *brackets) == (matched, gold, test)
            assert (result.words, result.correct_tags) == (words, tags)


@pytest.mark.parametrize(("split", "count"), [("train", 3396), ("dev", 273)])
def test_treebank_against_itself_scores_100(shared_dir, split, count):
    path = str(shared_dir / f"corpora/wsj_treebank_sample/{split}.clean")
    for result in vars(parseval_files(path, path)).values():
        if hasattr(result, "f1"):
            assert result.f1 == result.recall == result.precision == 100
            assert result.complete_match == result.tagging == 100
    assert parseval_files(path, path).all.valid == count


def test_counts_of_a_sentence():
    # Brackets of the gold tree: S 0-3, NP 0-2, VP 2-3; of the parse: S 0-3, NP 1-2,
    # VP 2-3.
    result = score_sentence(
        DOG, "(TOP (S (DT the) (NP (NN dog)) (VP (VBZ barks)) (. .)))"
    )
    assert (result.gold_brackets, result.test_brackets, result.matched) == (3, 3, 2)
    assert (result.words, result.correct_tags, result.length) == (3, 3, 4)
    assert not result.complete


def test_f1_is_computed_over_all_sentences():
    flat = "(TOP (S (DT the) (NN dog) (VBZ barks) (. .)))"
    result = parseval([DOG, DOG], [DOG, flat]).all
    assert (result.gold_brackets, result.test_brackets, result.matched) == (6, 4, 4)
    assert result.recall == pytest.approx(400 / 6)
    assert result.precision == 100
    assert result.f1 == pytest.approx(80)
    assert result.complete_match == 50


def test_ignores_functional_tags_and_indices():
    test = DOG.replace("(NP ", "(NP-SBJ-1 ").replace("(VP ", "(VP=2 ")
    assert score_sentence(DOG, test).complete


def test_particles_and_adverbs_are_equal():
    gold = "(S (VP (VB give) (PRT (RP up))))"
    assert score_sentence(gold, gold.replace("PRT", "ADVP")).complete
    assert not score_sentence(gold, gold.replace("PRT", "ADJP")).complete


def test_ignores_traces_and_constituents_of_traces():
    gold = "(S (VP (VBD said) (SBAR (-NONE- 0) (S (-NONE- *T*-1)))) (. .))"
    result = score_sentence(gold, "(S (VP (VBD said)) (. .))")
    assert result.complete
    assert (result.gold_brackets, result.length, result.words) == (2, 2, 1)


def test_outermost_label_counts_unless_it_is_top():
    bare = DOG.removeprefix("(TOP ").removesuffix(")")
    assert score_sentence(DOG, bare).complete
    # The outermost bracket in the treebank's files has no label, but it is counted.
    assert score_sentence(DOG, f"( {bare})").test_brackets == 4
    assert score_sentence(DOG, f"(ROOT {bare})").test_brackets == 4


def test_equal_brackets_are_counted_separately():
    # EVALB's README, section 7.5.
    double = DOG.replace("(NP ", "(NP (NP ").replace("dog))", "dog)))")
    result = score_sentence(DOG, double)
    assert (result.gold_brackets, result.test_brackets, result.matched) == (3, 4, 3)
    result = score_sentence(double, DOG)
    assert (result.gold_brackets, result.test_brackets, result.matched) == (4, 3, 3)
    assert score_sentence(double, double).complete


def test_ignores_the_position_of_punctuation():
    test = "(TOP (S (NP (DT the) (NN dog)) (VP (VBZ barks) (. .))))"
    assert score_sentence(DOG, test).complete


def test_wrong_tag_of_punctuation_is_an_error():
    assert score_sentence(DOG, DOG.replace("(. .)", "(NN .)")).status == ERROR
    assert score_sentence(DOG, DOG.replace("(NN dog)", "(, dog)")).status == ERROR
    # Confusing two tags of punctuation is not an error.
    assert score_sentence(DOG, DOG.replace("(. .)", "(: .)")).complete


@pytest.mark.parametrize(
    "test",
    [
        DOG.replace("dog", "cat"),
        DOG.replace("(DT the) ", ""),
        DOG.removesuffix(")"),
        DOG + ")",
        "(TOP (S (NP the dog) (VP (VBZ barks)) (. .)))",
        "error: no parse",
    ],
)
def test_malformed_parse_is_an_error(test):
    status = SKIPPED if test.startswith("error") else ERROR
    result = score_sentence(DOG, test)
    assert (result.status, result.test_brackets, result.matched) == (status, 0, 0)


@pytest.mark.parametrize("test", ["", "  ", "(TOP (. .))", "(S)", "()"])
def test_parse_without_words_is_skipped(test):
    assert score_sentence(DOG, test).status == SKIPPED


def test_failures_as_zero_includes_all_sentences():
    report = parseval([DOG] * 4, [DOG, "", DOG[:-1], DOG])
    assert (report.all.f1, report.all.complete_match) == (100, 100)
    assert (report.all.errors, report.all.skipped) == (1, 1)
    result = report.failures_as_zero
    assert (result.matched, result.gold_brackets, result.test_brackets) == (6, 12, 6)
    assert (result.recall, result.precision) == (50, 100)
    assert result.f1 == pytest.approx(200 / 3)
    assert (result.complete_match, result.tagging, result.valid) == (50, 50, 4)


def test_failure_is_never_a_complete_match():
    report = parseval(["(TOP (NN dog))"], [""])
    assert report.all.complete_match == report.failures_as_zero.complete_match == 0


def test_no_matches_score_zero():
    report = parseval([DOG], [""])
    assert report.all.to_dict()["f1"] == 0
    assert report.failures_as_zero.f1 == 0


def test_only_ascii_white_space_separates_words():
    gold = "(S (NN a\u00a0b))"
    assert score_sentence(gold, gold).words == 1


def test_unlabelled_brackets_are_compared_by_span():
    test = DOG.replace("(NP ", "(X ")
    assert score_sentence(DOG, test).matched == 2
    assert score_sentence(DOG, test, Parameters(labelled=False)).matched == 3


def test_reinserts_quotes_if_the_parameters_list_their_tags(evalb):
    # The lengths differ only because one of the tags is punctuation.
    gold = (
        "(TOP (S (NP (NP (NNS dogs) (POS ')) (NN tea)) (VP (VBZ is) (ADJP (JJ hot)))))"
    )
    test = gold.replace("(POS ')", "('' ')")
    assert score_sentence(gold, test).status == ERROR
    new = read_parameters(str(evalb / "prm/new.prm"))
    for one_side, other in ((gold, test), (test, gold)):
        result = score_sentence(one_side, other, new)
        assert result.status == VALID
        assert (result.gold_brackets, result.test_brackets, result.matched) == (5, 5, 5)
        assert (result.words, result.correct_tags) == (5, 4)


def test_default_parameters_are_collins(evalb):
    assert read_parameters(str(evalb / "prm/COLLINS.prm")) == Parameters()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("DELETE_LABLE TOP", "'DELETE_LABLE TOP' is not a line"),
        ("EQ_LABEL ADVP", "'EQ_LABEL ADVP'"),
        ("CUTOFF_LEN forty", "'CUTOFF_LEN forty'"),
    ],
)
def test_malformed_parameter_is_reported_with_its_line(tmp_path, line, message):
    path = tmp_path / "my.prm"
    path.write_text(f"# comment\n\nMAX_ERROR 5\n{line}\n")
    with pytest.raises(UserError, match=f"my.prm:4: {message}"):
        read_parameters(str(path))
