"""Tests of the detection of preprocessed text."""

import pytest
from sacremoses import MosesTokenizer

from t2t_repro.problems.raw_text import LineMarks, find_preprocessing
from t2t_repro.system.atomic_file import iterate_lines, read_lines

NEWSTEST = "corpora/wmt_newstest"


def findings(lines, name="train.en"):
    marks = LineMarks()
    for line in lines:
        marks.add(line)
    return find_preprocessing([(name, marks)])


@pytest.mark.parametrize("language", ["en", "de", "fr"])
@pytest.mark.parametrize("aggressive", [False, True])
def test_detects_moses_tokens_of_newstest(shared_dir, language, aggressive):
    path = f"{NEWSTEST}/en-{'fr' if language == 'fr' else 'de'}/newstest2013.{language}"
    tokenizer = MosesTokenizer(language)
    lines = [
        tokenizer.tokenize(line, return_str=True, aggressive_dash_splits=aggressive)
        for line in read_lines(shared_dir / path)[:300]
    ]
    (finding,) = findings(lines)
    assert finding.startswith("tokens of Moses' tokenizer in ")


def test_detects_the_output_of_subword_nmt(shared_dir):
    folder = shared_dir / "subword/subword-nmt"
    # The input of subword-nmt was tokenized by Moses.
    (moses,) = findings(read_lines(folder / "corpus.en"))
    *_, bpe = both = findings(read_lines(folder / "corpus.bpe.ref.en"))
    assert moses.startswith("tokens of Moses' tokenizer in ")
    assert bpe.startswith("BPE marks of subword-nmt in ")
    assert len(both) == 2


def test_detects_a_test_set_in_sgml():
    # The format of newstest2014-deen-src.en.sgm.
    (finding,) = findings(
        [
            '<srcset setid="newstest2014" srclang="any">',
            '<doc sysid="ref" docid="1-de" genre="news" origlang="de">',
            "<p>",
            '<seg id="1">Gutach: Increased safety for pedestrians</seg>',
            "</p>",
            "</doc>",
            "</srcset>",
        ],
        "test.en",
    )
    assert finding == (
        "SGML markup in 5 of 7 lines of test.en, such as '<srcset "
        'setid="newstest2014" srclang="any">\'; text must be raw: keep only the text '
        "between <seg ...> and </seg>, one segment a line (sacrebleu --echo extracts "
        "WMT's test sets)"
    )


def test_no_findings_in_raw_corpora(shared_dir):
    files = [
        *(shared_dir / "corpora/multi30k").glob("*.*"),
        *(shared_dir / "corpora/tatoeba-en-de").glob("*.??"),
        *(shared_dir / NEWSTEST).glob("*/*.??"),
    ]
    sides = {str(path): LineMarks() for path in files}
    for path in files:
        for line in iterate_lines(path):
            sides[str(path)].add(line)
    assert sum(side.lines for side in sides.values()) > 400_000
    assert find_preprocessing([*sides.items()]) == []
    # No line has marks, so the corpora are not merely below a reporting threshold.
    assert not any(side.marked for side in sides.values())


@pytest.mark.parametrize(
    "line",
    [
        "Write to bob@example.org, or to @bob & <b>Eve</b>.",
        "He said &quot;no&quot; and that&apos;s it.",  # As on web pages.
        "a <p> of HTML, <document>, < seg >, x@@y, ##AT",
        "Ernst &amp; Young",
    ],
)
def test_text_of_web_pages_has_no_marks(line):
    assert findings([line] * 10) == []


@pytest.mark.parametrize(
    "line",
    [
        "well @-@ known",
        "4 @,@ 500 people",
        "&quot; No , &quot; she said .",
        "It &apos;s late .",
        "Das E-Mail ##AT##-##AT## Postfach",
    ],
)
def test_each_moses_token_is_a_mark(line):
    assert len(findings([line] * 10)) == 1


def test_ignores_a_few_stray_lines():
    stray = "res@@ ump@@ tion"
    assert findings([stray] * 2) == []
    assert findings([stray] * 3 + ["raw"] * 298) == []
    (finding,) = findings([stray] * 3 + ["raw"] * 297)
    assert finding.startswith(
        "BPE marks of subword-nmt in 3 of 300 lines of train.en, "
    )


def test_finding_names_every_marked_side():
    sides = {"train.en": LineMarks(), "train.de": LineMarks(), "val.de": LineMarks()}
    for name, line in zip(sides, ("a@@ b", "raw", "c@@ d"), strict=True):
        for _ in range(5):
            sides[name].add(line)
    (finding,) = find_preprocessing([*sides.items()])
    assert (
        "in 5 of 5 lines of train.en, 5 of 5 lines of val.de, such as 'a@@ b';"
        in finding
    )


def test_long_example_is_cut_around_its_mark():
    (finding,) = findings(["x" * 500 + " a@@ b " + "y" * 500] * 3)
    example = finding.split("'")[1]
    assert len(example) == 60
    assert " a@@ b " in example
