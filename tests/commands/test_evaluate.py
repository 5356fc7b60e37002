"""Tests of the command `evaluate`."""

import json

import pytest
from sacrebleu import corpus_bleu

from tests import run_command, tiny

pytestmark = pytest.mark.medium


def evaluate(trained, *arguments):
    return run_command.run(
        "evaluate", "--model_dir", str(trained.model_dir), *arguments
    )


def test_json_contains_the_scores_and_their_origin(trained):
    completed = evaluate(trained, "--json")
    assert (completed.status, completed.err) == (0, "")
    values = json.loads(completed.out)
    assert values.keys() >= {
        "bleu",
        "signature",
        "paper_bleu",
        "sentences",
        "seconds",
        "checkpoint",
    }
    assert values["bleu"] == pytest.approx(trained.result["bleu"])
    assert values["paper_bleu"] == pytest.approx(trained.result["paper_bleu"])
    assert values["tokens"] == trained.result["tokens"]
    assert values["checkpoint"] == str(trained.model_dir / "averaged")
    assert (values["split"], values["sentences"]) == ("test", tiny.SIZES["test"])


def test_score_is_that_of_the_written_translations(trained, tmp_path):
    output = tmp_path / "out.de"
    checkpoint = str(trained.model_dir / "checkpoints/step-00000002")
    completed = evaluate(
        trained,
        *("--split", "val", "--checkpoint", checkpoint, "--batch_size", "2"),
        *("--beam_size", "1", "--alpha", "0", "--output_file", str(output)),
    )
    assert completed.err == ""
    lines = output.read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    assert len(lines) == tiny.SIZES["val"]
    references = [target for _, target in tiny.pairs("val")]
    bleu = corpus_bleu(lines, [references]).score
    first, *_, last = completed.out.splitlines()
    assert first.startswith(f"BLEU {bleu:.2f}  ")
    assert last == f"{checkpoint} on val.en and val.de, 5 lines"


def test_translates_and_scores_any_files(trained, tmp_path):
    for name, side in (("text.en", 0), ("text.de", 1)):
        lines = [pair[side] for pair in tiny.pairs("test")]
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
    source, reference = str(tmp_path / "text.en"), str(tmp_path / "text.de")
    output, comet = tmp_path / "out.de", tmp_path / "comet 1"
    completed = evaluate(
        trained,
        *("--source_file", source, "--reference_file", reference, "--json"),
        *("--output_file", str(output), "--comet_dir", str(comet)),
        *("--compare", str(trained.model_dir)),
    )
    values = json.loads(completed.out)
    assert values["bleu"] == pytest.approx(trained.result["bleu"])
    assert values["paper_bleu"] == pytest.approx(trained.result["paper_bleu"])
    assert [each["name"] for each in values["differences"]] == [
        *("BLEU", "chrF", "chrF++", "TER")
    ]
    # The model is compared with itself.
    assert all(
        each["first"]["score"] == each["second"]["score"]
        for each in values["differences"]
    )
    texts = [
        (comet / f"{n}.txt").read_text(encoding="utf-8").splitlines()
        for n in ("source", "translation", "reference")
    ]
    assert texts[0] == (tmp_path / "text.en").read_text(encoding="utf-8").splitlines()
    assert texts[1] == output.read_text(encoding="utf-8").splitlines()
    assert values["comet_command"].startswith(
        f"comet-score -s '{comet}/source.txt' -t "
    )
    # Existing translations are scored without a model. Without a target language, only
    # the paper's BLEU is missing.
    again = run_command.run(
        "evaluate", "--hypothesis_file", str(output), "--reference_file", reference
    )
    assert (
        again.out.splitlines()[0] == f"BLEU {values['bleu']:.2f}  {values['signature']}"
    )
    assert "paper" not in again.out
