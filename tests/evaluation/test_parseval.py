"""The scorer against EVALB: its sample, its README, and counts made by hand."""

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


def one(gold, test, parameters=None):
    """Returns what is counted in one sentence."""
    return parseval([gold], [test], parameters or Parameters()).results[0]


@pytest.fixture(scope="session")
def evalb(shared_dir):
    return shared_dir / "reference_scores/evalb"


@pytest.fixture(scope="session")
def sample(evalb):
    """EVALB's sample, scored with the sample's own parameters."""
    parameters = read_parameters(str(evalb / "sample/sample.prm"))
    folder = evalb / "sample"
    return parseval_files(
        str(folder / "sample.gld"), str(folder / "sample.tst"), parameters
    )


def test_the_sample_has_evalbs_figures(sample):
    found = sample.all
    assert (found.sentences, found.errors, found.skipped, found.valid) == (24, 5, 2, 17)
    assert (found.matched, found.gold_brackets, found.test_brackets) == (86, 98, 95)
    assert (found.words, found.correct_tags) == (108, 106)
    figures = (found.recall, found.precision, found.complete_match, found.tagging)
    assert [round(figure, 2) for figure in figures] == [87.76, 90.53, 52.94, 98.15]


def test_the_samples_short_sentences_have_evalbs_figures(sample):
    found = sample.short
    assert sample.cutoff == 40
    assert (found.sentences, found.errors, found.skipped, found.valid) == (23, 5, 2, 16)
    figures = (found.recall, found.precision, found.complete_match, found.tagging)
    assert [round(figure, 2) for figure in figures] == [81.25, 85.25, 50.00, 96.88]


def test_each_sentence_of_the_sample_has_evalbs_counts(sample, evalb):
    rows = [
        [int(number) for number in re.findall(r"(?<![\d.])\d+(?![\d.])", line)]
        for line in read_lines(evalb / "sample/sample.rsl")
        if re.match(r" +\d+ +\d+ +[012] ", line)
    ]
    assert len(rows) == 24
    status = {0: VALID, 1: ERROR, 2: SKIPPED}
    for (_, length, code, *counts), found in zip(rows, sample.results, strict=True):
        assert (found.length, found.status) == (length, status[code])
        if code == 0:
            matched, gold, test, _crossing, words, tags = counts
            brackets = found.gold_brackets, found.test_brackets
            assert (found.matched, *brackets) == (matched, gold, test)
            assert (found.words, found.correct_tags) == (words, tags)


@pytest.mark.parametrize(("split", "count"), [("train", 3396), ("dev", 273)])
def test_the_treebank_against_itself_is_one_hundred(shared_dir, split, count):
    path = str(shared_dir / f"corpora/wsj_treebank_sample/{split}.clean")
    for found in vars(parseval_files(path, path)).values():
        if hasattr(found, "f1"):
            assert found.f1 == found.recall == found.precision == 100
            assert found.complete_match == found.tagging == 100
    assert parseval_files(path, path).all.valid == count


def test_brackets_are_counted_by_hand():
    # Gold: S 0-3, NP 0-2, VP 2-3; parse: S 0-3, NP 1-2, VP 2-3.
    found = one(DOG, "(TOP (S (DT the) (NP (NN dog)) (VP (VBZ barks)) (. .)))")
    assert (found.gold_brackets, found.test_brackets, found.matched) == (3, 3, 2)
    assert (found.words, found.correct_tags, found.length) == (3, 3, 4)
    assert not found.complete


def test_f1_is_the_harmonic_mean_over_all_sentences():
    flat = "(TOP (S (DT the) (NN dog) (VBZ barks) (. .)))"
    found = parseval([DOG, DOG], [DOG, flat]).all
    assert (found.gold_brackets, found.test_brackets, found.matched) == (6, 4, 4)
    assert found.recall == pytest.approx(400 / 6)
    assert found.precision == 100
    assert found.f1 == pytest.approx(80)
    assert found.complete_match == 50


def test_functional_tags_and_indices_do_not_count():
    test = DOG.replace("(NP ", "(NP-SBJ-1 ").replace("(VP ", "(VP=2 ")
    assert one(DOG, test).complete


def test_particles_and_adverbs_are_the_same():
    gold = "(S (VP (VB give) (PRT (RP up))))"
    assert one(gold, gold.replace("PRT", "ADVP")).complete
    assert not one(gold, gold.replace("PRT", "ADJP")).complete


def test_traces_go_with_what_holds_nothing_else():
    gold = "(S (VP (VBD said) (SBAR (-NONE- 0) (S (-NONE- *T*-1)))) (. .))"
    found = one(gold, "(S (VP (VBD said)) (. .))")
    assert found.complete
    assert (found.gold_brackets, found.length, found.words) == (2, 2, 1)


def test_the_outermost_label_counts_unless_it_is_top():
    bare = DOG.removeprefix("(TOP ").removesuffix(")")
    assert one(DOG, bare).complete
    # As the treebank's own files have it: a bracket without a label is counted.
    assert one(DOG, f"( {bare})").test_brackets == 4
    assert one(DOG, f"(ROOT {bare})").test_brackets == 4


def test_a_constituent_twice_over_the_same_words_is_counted_twice():
    # EVALB's README, section 7.5: n in the gold file, m in the other.
    double = DOG.replace("(NP ", "(NP (NP ").replace("dog))", "dog)))")
    found = one(DOG, double)
    assert (found.gold_brackets, found.test_brackets, found.matched) == (3, 4, 3)
    found = one(double, DOG)
    assert (found.gold_brackets, found.test_brackets, found.matched) == (4, 3, 3)
    assert one(double, double).complete


def test_the_place_of_punctuation_does_not_matter():
    test = "(TOP (S (NP (DT the) (NN dog)) (VP (VBZ barks) (. .))))"
    assert one(DOG, test).complete


def test_punctuation_is_told_by_its_tag_so_a_wrong_one_is_an_error():
    assert one(DOG, DOG.replace("(. .)", "(NN .)")).status == ERROR
    assert one(DOG, DOG.replace("(NN dog)", "(, dog)")).status == ERROR
    # Among themselves these tags may be mistaken for each other.
    assert one(DOG, DOG.replace("(. .)", "(: .)")).complete


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
def test_what_is_no_parse_of_the_sentence_is_an_error(test):
    status = SKIPPED if test.startswith("error") else ERROR
    found = one(DOG, test)
    assert (found.status, found.test_brackets, found.matched) == (status, 0, 0)


@pytest.mark.parametrize("test", ["", "  ", "(TOP (. .))", "(S)", "()"])
def test_a_parse_without_words_is_skipped(test):
    assert one(DOG, test).status == SKIPPED


def test_failures_can_be_counted_as_zero():
    report = parseval([DOG] * 4, [DOG, "", DOG[:-1], DOG])
    assert (report.all.f1, report.all.complete_match) == (100, 100)
    assert (report.all.errors, report.all.skipped) == (1, 1)
    found = report.failures_as_zero
    assert (found.matched, found.gold_brackets, found.test_brackets) == (6, 12, 6)
    assert (found.recall, found.precision) == (50, 100)
    assert found.f1 == pytest.approx(200 / 3)
    assert (found.complete_match, found.tagging, found.valid) == (50, 50, 4)


def test_a_failure_is_never_a_complete_match():
    report = parseval(["(TOP (NN dog))"], [""])
    assert report.all.complete_match == report.failures_as_zero.complete_match == 0


def test_nothing_found_is_zero():
    report = parseval([DOG], [""])
    assert report.all.to_dict()["f1"] == 0
    assert report.failures_as_zero.f1 == 0


def test_only_white_space_of_ascii_separates():
    gold = "(S (NN a\u00a0b))"
    assert one(gold, gold).words == 1


def test_spans_alone_can_be_compared():
    test = DOG.replace("(NP ", "(X ")
    assert one(DOG, test).matched == 2
    assert one(DOG, test, Parameters(labelled=False)).matched == 3


def test_a_quote_is_reinserted_where_the_parameters_name_its_tags(evalb):
    """The sentences differ in length only because one tag is punctuation's."""
    gold = (
        "(TOP (S (NP (NP (NNS dogs) (POS ')) (NN tea)) (VP (VBZ is) (ADJP (JJ hot)))))"
    )
    test = gold.replace("(POS ')", "('' ')")
    assert one(gold, test).status == ERROR
    new = read_parameters(str(evalb / "prm/new.prm"))
    for one_side, other in ((gold, test), (test, gold)):
        found = one(one_side, other, new)
        assert found.status == VALID
        assert (found.gold_brackets, found.test_brackets, found.matched) == (5, 5, 5)
        assert (found.words, found.correct_tags) == (5, 4)


def test_a_gold_tree_that_cannot_be_read_is_refused_by_its_line(tmp_path):
    gold, test = tmp_path / "gold", tmp_path / "test"
    gold.write_text(f"{DOG}\n{DOG[:-1]}\n")
    test.write_text(f"{DOG}\n{DOG}\n")
    with pytest.raises(UserError, match=r"gold, line 2: closing brackets are missing"):
        parseval_files(str(gold), str(test))


def test_files_of_different_length_are_refused(tmp_path):
    gold, test = tmp_path / "gold", tmp_path / "test"
    gold.write_text(f"{DOG}\n{DOG}\n")
    test.write_text(f"{DOG}\n")
    with pytest.raises(UserError, match=r"gold has 2 lines but .*test has 1"):
        parseval_files(str(gold), str(test))


def test_collins_parameters_are_the_default(evalb):
    assert read_parameters(str(evalb / "prm/COLLINS.prm")) == Parameters()


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("DELETE_LABLE TOP", "'DELETE_LABLE TOP' is no line"),
        ("EQ_LABEL ADVP", "'EQ_LABEL ADVP'"),
        ("CUTOFF_LEN forty", "'CUTOFF_LEN forty'"),
    ],
)
def test_a_line_that_is_no_parameter_is_refused(tmp_path, line, shown):
    path = tmp_path / "my.prm"
    path.write_text(f"# comment\n\nMAX_ERROR 5\n{line}\n")
    with pytest.raises(UserError, match=f"my.prm:4: {shown}"):
        read_parameters(str(path))
