"""The command `evaluate`: the score of a split."""

import json

import pytest
from sacrebleu import corpus_bleu

from tests import run_command, tiny

pytestmark = pytest.mark.medium


def evaluate(trained, *arguments):
    return run_command.run(
        "evaluate", "--model_dir", str(trained.model_dir), *arguments
    )


def test_json_holds_what_a_program_needs(trained):
    done = evaluate(trained, "--json")
    assert (done.status, done.err) == (0, "")
    found = json.loads(done.out)
    assert found.keys() >= {
        "bleu",
        "signature",
        "paper_bleu",
        "sentences",
        "seconds",
        "checkpoint",
    }
    assert found["bleu"] == pytest.approx(trained.result["bleu"])
    assert found["paper_bleu"] == pytest.approx(trained.result["paper_bleu"])
    assert found["tokens"] == trained.result["tokens"]
    assert found["checkpoint"] == str(trained.model_dir / "averaged")
    assert (found["split"], found["sentences"]) == ("test", tiny.SIZES["test"])


def test_the_score_is_that_of_the_translations_it_writes(trained, tmp_path):
    output = tmp_path / "out.de"
    checkpoint = str(trained.model_dir / "checkpoints/step-00000002")
    done = evaluate(
        trained,
        *("--split", "val", "--checkpoint", checkpoint, "--batch_size", "2"),
        *("--beam_size", "1", "--alpha", "0", "--output_file", str(output)),
    )
    assert done.err == ""
    lines = output.read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    assert len(lines) == tiny.SIZES["val"]
    references = [target for _, target in tiny.pairs("val")]
    bleu = corpus_bleu(lines, [references]).score
    first, *_, last = done.out.splitlines()
    assert first.startswith(f"BLEU {bleu:.2f}  ")
    assert last == f"{checkpoint} on val.en and val.de, 5 lines"


def test_an_output_that_cannot_be_written_is_refused_before_the_work(trained, tmp_path):
    done = evaluate(trained, "--output_file", str(tmp_path / "absent" / "out.de"))
    assert run_command.is_one_clear_line(done)
    assert "absent" in done.err
