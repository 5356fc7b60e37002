"""Tests of metrics and comparisons against sacreBLEU's command."""

import json
import re
import subprocess
import sys

import pytest

from t2t_repro.evaluation.bleu import check_tokenizer, select_tokenizer
from t2t_repro.evaluation.metrics import figures, paired_bootstrap
from t2t_repro.evaluation.references import describe_empty_references
from t2t_repro.system.atomic_file import read_lines
from t2t_repro.system.errors import UserError

SYSTEMS = "reference_scores/wmt17_en_de_systems"


@pytest.fixture(scope="module")
def systems(shared_dir):
    return shared_dir / SYSTEMS


def lines_of(folder, name, count=None):
    return read_lines(folder / name)[:count]


def sacrebleu(*arguments):
    """Runs sacreBLEU's command and returns its output."""
    command = [sys.executable, "-m", "sacrebleu", *map(str, arguments)]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    return process.stdout


def test_figures_agree_with_sacrebleus_command(systems, tmp_path):
    names = {"reference.de": 200, "newstest2017.LIUM-NMT.4900.en-de.txt": 200}
    for name, count in names.items():
        text = "\n".join(lines_of(systems, name, count))
        (tmp_path / name).write_text(f"{text}\n", encoding="utf-8")
    reference, hypotheses = (tmp_path / name for name in names)
    results = {
        f.name: f for f in figures(read_lines(hypotheses), [read_lines(reference)])
    }
    for name, flags in (
        ("BLEU", ["-m", "bleu"]),
        ("chrF", ["-m", "chrf"]),
        ("chrF++", ["-m", "chrf", "--chrf-word-order", 2]),
        ("TER", ["-m", "ter"]),
    ):
        expected = json.loads(sacrebleu(reference, "-i", hypotheses, *flags, "-w", 4))
        score = results.pop(name).score
        assert score == pytest.approx(expected["score"], abs=6e-5), name
    assert not results


@pytest.mark.medium
def test_bootstrap_agrees_with_sacrebleus_command(systems, tmp_path):
    names = [f"newstest2017.{n}.en-de.txt" for n in ("LIUM-NMT.4900", "online-F.0")]
    for name in ("reference.de", *names):
        text = "\n".join(lines_of(systems, name, 120))
        (tmp_path / name).write_text(f"{text}\n", encoding="utf-8")
    reference, *files = (tmp_path / name for name in ("reference.de", *names))
    ours, others, references = map(read_lines, (*files, reference))
    differences = {d.name: d for d in paired_bootstrap(ours, others, [references])}
    table = sacrebleu(reference, "-i", *files, "--paired-bs", "-w", 2, "-f", "text")
    score, spread = r"([0-9.]+)", r"\(([0-9.]+) ± ([0-9.]+)\)"
    rows = re.findall(rf"\s{score} {spread}", table)
    (p_value,) = re.findall(r"p = ([0-9.]+)", table)
    bleu = differences["BLEU"]
    for row, each in zip(rows, (bleu.first, bleu.second), strict=True):
        assert row == tuple(f"{v:.2f}" for v in (each.score, each.mean, each.ci))
    assert f"{bleu.second.p_value:.4f}" == p_value
    # With a difference of ten BLEU points, the p-value is the smallest possible one
    # for 1,000 samples.
    assert "differ: p = 0.0010" in bleu.text()
    json.dumps([each.to_dict() for each in differences.values()])


def test_system_does_not_differ_from_itself():
    lines = ["a b c d e", "f g h i j", "k l m n o"]
    for each in paired_bootstrap(lines, lines, [lines[::-1]], samples=20):
        assert "do not differ significantly: p = 1.0000 " in each.text()
        assert each.to_dict()["second"]["p_value"] == 1
    with pytest.raises(UserError, match="at least two lines"):
        paired_bootstrap(lines[:1], lines[1:2], [lines[2:]])


def test_any_of_several_references_may_match():
    hypotheses = ["ein Hund läuft im Park .", "zwei Katzen schlafen auf dem Sofa ."]
    others = ["etwas ganz anderes steht hier .", "und hier steht auch nichts davon ."]
    mixed = [[hypotheses[0], others[1]], [others[0], hypotheses[1]]]
    single = {f.name: f.score for f in figures(hypotheses, mixed[:1], "de")}
    scores = {f.name: f.score for f in figures(hypotheses, mixed, "de")}
    perfect = {"BLEU": 100, "the paper's BLEU": 100, "chrF": 100, "chrF++": 100}
    assert scores == pytest.approx(perfect | {"TER": 0})
    assert all(single[name] < 90 for name in perfect)
    assert single["TER"] > 0


def test_rejects_references_of_different_length():
    with pytest.raises(UserError, match="2 hypotheses and 1 references"):
        figures(["a", "b"], [["a", "b"], ["a"]])


@pytest.mark.parametrize(
    ("language", "hypotheses", "references", "tokenize"),
    [
        (
            "zh-TW",
            ["我喜欢猫。", "今天天气很好"],
            ["我喜欢狗。", "今天天气非常好"],
            "zh",
        ),
        ("ja", ["猫が好きです。", "雨が降る"], ["犬が好きです。", "雨が降る"], "char"),
        ("th", ["แมวกินปลา", "ฝนตกหนัก"], ["แมวกินปลา", "ฝนตก"], "char"),
    ],
)
def test_languages_without_spaces_agree_with_sacrebleus_command(
    language, hypotheses, references, tokenize, tmp_path, monkeypatch
):
    # Japanese is scored as if no dictionary were installed.
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_ja_mecab.MeCab", None)
    for name, lines in (("hyp", hypotheses), ("ref", references)):
        (tmp_path / name).write_text("\n".join([*lines, ""]), encoding="utf-8")
    chosen, note = select_tokenizer(language)
    assert (chosen, bool(note)) == (tokenize, tokenize == "char")
    flags = ("-lc", "-tok", tokenize, "-b", "-w", 4)
    expected = sacrebleu(tmp_path / "ref", "-i", tmp_path / "hyp", *flags)
    bleu, *others = figures(hypotheses, [references], language, chosen, lowercase=True)
    assert f"{bleu.score:.4f}" == expected.strip()
    assert f"|tok:{tokenize}|" in bleu.signature
    assert [each.name for each in others] == ["chrF", "chrF++", "TER"]


def test_text_without_spaces_in_an_unknown_language_is_noticed():
    assert "--target_lang" in select_tokenizer(None, ["我喜欢狗。"]).note
    assert select_tokenizer(None, ["Ein Hund heißt 犬.", ""]) == ("13a", "")
    with pytest.raises(UserError, match="--tokenize 13b: use one of 13a, "):
        check_tokenizer("13b")


def test_an_empty_alternative_reference_is_none():
    hypotheses = ["eins zwei drei vier fünf", "falsch ganz und gar hier"]
    references = [["eins zwei drei vier sechs", "falsch"], [hypotheses[0], " "]]
    scores = {f.name: f for f in figures(hypotheses, references, "de")}
    # TER: 0 and 4 edits over mean lengths of 5 and 1 words.
    assert scores["TER"].score == pytest.approx(100 * 4 / 6)
    for name in ("BLEU", "the paper's BLEU", "chrF", "chrF++", "TER"):
        assert scores[name].signature.startswith("nrefs:var|")
    swapped = {f.name: f for f in figures(hypotheses, references[::-1], "de")}
    assert swapped == scores
    assert "1 of 2 lines have fewer ref" in describe_empty_references(references)


def test_a_line_without_a_reference_counts_as_wrong_and_is_reported():
    hypotheses, references = ["eins zwei drei vier", "a b"], ["eins zwei drei vier", ""]
    scores = {f.name: f.score for f in figures(hypotheses, [references])}
    assert (scores["chrF"], scores["TER"]) == (100, 50)
    assert scores["BLEU"] == pytest.approx(100 * (4 / 6 * 3 / 4 * 2 / 2 * 1) ** 0.25)
    note = describe_empty_references([references])
    assert note.startswith("1 of 2 lines have an empty reference: chrF and chrF++ ")
    assert describe_empty_references([references, ["", "x"]]).startswith("2 of 2 lines")
    assert describe_empty_references([hypotheses]) == ""
