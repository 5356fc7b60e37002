"""Figures and comparisons against sacreBLEU's own command and published scores."""

import json
import re
import subprocess
import sys

import pytest

from t2t_repro.evaluation.metrics import figures, paired_bootstrap
from t2t_repro.system.atomic_file import read_lines
from t2t_repro.system.errors import UserError

SYSTEMS = "reference_scores/wmt17_en_de_systems"


@pytest.fixture(scope="module")
def systems(shared_dir):
    return shared_dir / SYSTEMS


def lines_of(folder, name, count=None):
    return read_lines(folder / name)[:count]


def sacrebleu(*arguments):
    """Runs sacreBLEU's own command."""
    command = [sys.executable, "-m", "sacrebleu", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout


def test_each_figure_is_that_of_sacrebleus_command(systems, tmp_path):
    names = {"reference.de": 200, "newstest2017.LIUM-NMT.4900.en-de.txt": 200}
    for name, count in names.items():
        text = "\n".join(lines_of(systems, name, count))
        (tmp_path / name).write_text(f"{text}\n", encoding="utf-8")
    reference, hypotheses = (tmp_path / name for name in names)
    found = {
        f.name: f for f in figures(read_lines(hypotheses), [read_lines(reference)])
    }
    for name, flags in (
        ("BLEU", ["-m", "bleu"]),
        ("chrF", ["-m", "chrf"]),
        ("chrF++", ["-m", "chrf", "--chrf-word-order", 2]),
        ("TER", ["-m", "ter"]),
    ):
        told = json.loads(sacrebleu(reference, "-i", hypotheses, *flags, "-w", 4))
        assert found.pop(name).score == pytest.approx(told["score"], abs=6e-5), name
    assert not found


@pytest.mark.medium
def test_the_bootstrap_is_sacrebleus(systems, tmp_path):
    names = [f"newstest2017.{n}.en-de.txt" for n in ("LIUM-NMT.4900", "online-F.0")]
    for name in ("reference.de", *names):
        text = "\n".join(lines_of(systems, name, 120))
        (tmp_path / name).write_text(f"{text}\n", encoding="utf-8")
    reference, *files = (tmp_path / name for name in ("reference.de", *names))
    ours, others, references = map(read_lines, (*files, reference))
    found = {each.name: each for each in paired_bootstrap(ours, others, [references])}
    table = sacrebleu(reference, "-i", *files, "--paired-bs", "-w", 2, "-f", "text")
    score, spread = r"([0-9.]+)", r"\(([0-9.]+) ± ([0-9.]+)\)"
    rows = re.findall(rf"\s{score} {spread}", table)
    (p_value,) = re.findall(r"p = ([0-9.]+)", table)
    bleu = found["BLEU"]
    for row, each in zip(rows, (bleu.first, bleu.second), strict=True):
        assert row == tuple(f"{v:.2f}" for v in (each.score, each.mean, each.ci))
    assert f"{bleu.second.p_value:.4f}" == p_value
    # Ten BLEU points apart, on 120 sentences: by chance in none of 1,000 samples.
    assert "differ: p = 0.0010" in bleu.text()
    json.dumps([each.to_dict() for each in found.values()])


def test_a_system_does_not_differ_from_itself():
    lines = ["a b c d e", "f g h i j", "k l m n o"]
    for each in paired_bootstrap(lines, lines, [lines[::-1]], samples=20):
        assert "do not differ for certain" in each.text()


def test_any_of_several_references_is_right():
    hypotheses = ["ein Hund läuft im Park .", "zwei Katzen schlafen auf dem Sofa ."]
    others = ["etwas ganz anderes steht hier .", "und hier steht auch nichts davon ."]
    mixed = [[hypotheses[0], others[1]], [others[0], hypotheses[1]]]
    alone = {f.name: f.score for f in figures(hypotheses, mixed[:1], "de")}
    found = {f.name: f.score for f in figures(hypotheses, mixed, "de")}
    perfect = {"BLEU": 100, "the paper's BLEU": 100, "chrF": 100, "chrF++": 100}
    assert found == pytest.approx(perfect | {"TER": 0})
    assert all(alone[name] < 90 for name in perfect)
    assert alone["TER"] > 0


def test_references_of_another_length_are_refused():
    with pytest.raises(UserError, match="2 hypotheses and 1 references"):
        figures(["a", "b"], [["a", "b"], ["a"]])
