"""Tests of `train`, `evaluate` and `parse` with a parser."""

from __future__ import annotations

import json
import random

import pytest

from t2t_repro.problems.trees import read_tree
from tests import run_command

pytestmark = pytest.mark.medium

HPARAMS = """\
base: base
problem: parse_wsj
vocab_size: 320
d_model: 32
d_ff: 64
num_heads: 2
num_layers: 1
dropout: 0.0
warmup_steps: 40
tokens_per_batch: 512
max_length: 48
train_steps: 100
checkpoint_steps: 50
checkpoint_minutes: 0.0
average_last: 1
eval_steps: 0
beam_size: 2
decode_extra_length: 12
"""
NOUNS, VERBS = ("dog", "cat", "bird", "fish"), ("sees", "likes", "hears")
FIGURES = ("f1", "recall", "precision", "complete_match", "tagging")
COUNTS = ("repaired", "repaired_brackets", "repaired_tags", "errors", "sentences")


def tree(generator):
    """Draws a tree from a small grammar."""

    def phrase():
        if generator.random() < 0.3:
            return "(NP (PRP she))"
        return f"(NP (DT the) (NN {generator.choice(NOUNS)}))"

    verb = f"(VP (VBZ {generator.choice(VERBS)}) {phrase()})"
    return f"(TOP (S {phrase()} {verb} (. .)))"


@pytest.fixture(scope="module")
def parser(tmp_path_factory):
    """Trains a parser; returns its folder and the result of training."""
    folder = tmp_path_factory.mktemp("parser")
    for split, count in (("train", 200), ("val", 8), ("test", 12)):
        generator = random.Random(split)
        lines = [f"{tree(generator)}\n" for _ in range(count)]
        (folder / f"{split}.trees").write_text("".join(lines))
    (folder / "parser.yaml").write_text(HPARAMS)
    completed = train(folder)
    assert completed.status == 0, completed.err
    return folder, json.loads(completed.out)


def train(folder):
    return run_command.run(
        "train",
        *("--hparams", str(folder / "parser.yaml"), "--data_dir", str(folder)),
        *("--model_dir", str(folder / "model"), "--json"),
    )


def test_training_learns_a_small_grammar_and_scores_the_test_trees(parser):
    folder, result = parser
    assert result.keys() >= {*FIGURES, *COUNTS, "f1_repaired_as_0", "f1_errors_as_0"}
    assert "bleu" not in result
    assert result["sentences"] == 12
    assert result["split"] == "test.trees, 12 trees"
    assert json.loads((folder / "model/result.json").read_text()) == result
    header, *rows = (folder / "model/validation_log.tsv").read_text().splitlines()
    assert header == "step\tloss\tgreedy_f1"
    assert len(rows) == 1
    # A test has time for only a hundred steps; guessing would score about 50.
    assert min(result["f1"], result["tagging"]) > 80


def test_evaluate_and_parseval_give_the_same_figures(parser, tmp_path):
    folder, result = parser
    output = tmp_path / "trees"
    flags = ("--model_dir", str(folder / "model"), "--output_file", str(output))
    values = json.loads(run_command.run("evaluate", *flags, "--json").out)
    assert {name: values[name] for name in FIGURES} == pytest.approx(
        {name: result[name] for name in FIGURES}
    )
    files = ("--gold", str(folder / "test.trees"), "--test", str(output))
    scored = json.loads(run_command.run("parseval", *files, "--json").out)
    assert {name: scored[name] for name in FIGURES} == {
        name: values[name] for name in FIGURES
    }
    first, second, *_, last = run_command.run("evaluate", *flags).out.splitlines()
    assert first.startswith(f"F1 {values['f1']:.2f}  recall {values['recall']:.2f}  ")
    assert first.endswith("(EVALB, COLLINS.prm, 0 errors)")
    assert f"with the {values['repaired']} of 12 outputs counted as 0" in second
    assert last.endswith("averaged on test.trees, 12 trees")


def test_every_line_gets_a_tree_over_its_words_also_after_a_translation(
    parser, tmp_path
):
    folder, _ = parser
    lines = ["the dog sees she .", "", "Ünknown ( wörds ) ? 猫", "the " * 60]
    source, output = tmp_path / "text", tmp_path / "trees"
    source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    model = ("--model_dir", str(folder / "model"))
    files = ("--input_file", str(source), "--output_file", str(output))
    assert run_command.run("translate", *model, *files).status == 0
    assert not output.read_text(encoding="utf-8").startswith("(TOP")
    # The translation is not taken for an earlier output of this command.
    completed = run_command.run("parse", *model, *files)
    assert completed.status == 0, completed.err
    assert "of 3 trees were repaired, because no hypothesis" in completed.err
    trees = output.read_text(encoding="utf-8").split("\n")
    assert trees.pop() == ""
    assert trees[1] == ""
    for line, parsed in zip(lines, trees, strict=True):
        if line:
            words = line.replace("(", "-LRB-").replace(")", "-RRB-").split()
            assert read_tree(parsed)[1] == words
    # Standard input and output give the same trees.
    streamed = run_command.run("parse", *model, stdin=source.read_bytes())
    assert streamed.out == output.read_text(encoding="utf-8")
