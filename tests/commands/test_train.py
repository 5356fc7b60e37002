"""Tests of the command `train`."""

import json
import re
import shutil
import signal

import pytest

from t2t_repro import train
from tests import run_command, tiny
from tests.sixteen_bits import needs

KEYS = {"bleu", "signature", "paper_bleu", "paper_signature", "sentences", "seconds"}


def test_json_is_written_to_standard_output_and_progress_to_standard_error(trained):
    assert trained.done.out.count("\n") == 1
    assert trained.result.keys() >= KEYS
    lines = trained.done.err.splitlines()
    assert lines[0].endswith("precision float32, xla false: chosen for a CPU")
    assert lines[1] == "building a vocabulary of 300 subwords"
    assert any(line.startswith("step 4/4  loss ") for line in lines)
    assert lines[-1] == "scoring on test.en and test.de, 6 lines"


def test_prints_the_origin_of_the_weights_and_the_number_of_epochs(trained):
    lines = trained.done.err.splitlines()
    assert "starting from random weights (seed 1)" in lines
    (epoch,) = (line for line in lines if line.startswith("an epoch: "))
    batches = int(re.search(r" in (\d+) batches", epoch)[1])
    assert f"4 steps: {4 / batches:.1f} epochs" in lines


def test_only_the_set_of_another_model_is_reported(tmp_path):
    (tmp_path / "model.json").touch()
    used = tmp_path / "hparams.yaml"
    assert train.other_model(used, tmp_path / "new") == tmp_path
    assert train.other_model(used, tmp_path / "." / "new" / "..") is None
    assert train.other_model(tmp_path / "tiny", tmp_path / "new") is None
    assert train.other_model(tmp_path / "new" / "hparams.yaml", tmp_path) is None


def test_the_model_directory_contains_exactly_the_expected_files(trained):
    assert sorted(path.name for path in trained.model_dir.iterdir()) == [
        "averaged",
        "best_bleu",
        "checkpoints",
        "hparams.yaml",
        "model.json",
        "result.json",
        "skipped_pairs.tsv",
        "tensorboard",
        "training_log.tsv",
        "validation",
        "validation_log.tsv",
        "vocab.model",
    ]
    names = sorted(path.name for path in trained.data_dir.iterdir())
    assert names == [
        "encoded",
        *sorted(f"{s}.{x}" for s in tiny.SIZES for x in ("en", "de")),
    ]


def test_a_second_run_prints_the_scores_as_text(trained_copy):
    arguments = trained_copy.arguments()[:-1]  # Without --json.
    completed = run_command.run("train", *arguments)
    assert (completed.status, completed.err) == (0, "")
    *_, bleu, paper_bleu, split, place = completed.out.splitlines()
    assert bleu.startswith(f"BLEU {trained_copy.result['bleu']:.2f}  nrefs:1|")
    assert paper_bleu.startswith("the paper's BLEU ")
    assert split == "on test.en and test.de, 6 lines"
    assert place == f"the model is in {trained_copy.model_dir}"


@pytest.mark.medium
@needs("bfloat16")
def test_a_resumed_run_keeps_its_precision_on_another_device(tmp_path):
    tiny.write_corpus(tmp_path / "data")
    tiny.write_hparams(tmp_path)
    run = tiny.Trained(tmp_path, None)
    # One shape of micro-batches, which XLA compiles once; without scores.
    arguments = run.arguments("tokens_per_batch=64,warmup_steps=9")
    overrides = ",rows_multiple=2,max_tokens_per_device=64"
    gpu_arguments = [a + overrides if ".yaml," in a else a for a in arguments]
    flags = ("--precision", "bfloat16", "--xla", "--train_steps")
    completed = run_command.run("train", *gpu_arguments, *flags, "1")
    assert completed.status == 0, completed.err
    started = completed.err
    written = (run.model_dir / "hparams.yaml").read_text(encoding="utf-8")
    for line in ("precision: bfloat16", "xla: true", "rows_multiple: 2"):
        assert f"\n{line}\n" in written
    # In a new run on a CPU, "auto" would select float32 without XLA.
    completed = run_command.run("train", *arguments, "--train_steps", "2")
    assert completed.status == 0, completed.err
    shapes = re.search(r"^max_shapes: (\d+)$", written, re.MULTILINE)[1]
    assert f"max_shapes {shapes}: chosen for 1 step, of about" in started
    assert completed.err.splitlines()[0] == (
        f"max_shapes {shapes}, max_tokens_per_device 64, rows_multiple 2, "
        "precision bfloat16, xla true: kept from the start of this training"
    )
    assert f"XLA compiles {shapes} shape" in completed.err
    assert "resuming from step 1 in" in completed.err
    again = (run.model_dir / "hparams.yaml").read_text(encoding="utf-8")
    assert again == written.replace("train_steps: 1\n", "train_steps: 2\n")
    completed = run_command.run("train", *arguments, "--xla", "false")
    assert completed.status == 2
    assert "xla was True, is now False" in completed.err


@pytest.mark.medium
def test_ctrl_c_saves_and_prints_how_to_resume_with_a_given_vocabulary(
    trained, tmp_path
):
    tiny.write_corpus(tmp_path / "data")
    tiny.write_hparams(tmp_path)
    run = tiny.Trained(tmp_path, trained.done)
    shutil.copy(trained.model_dir / "vocab.model", tmp_path / "mine.model")
    given = ("--vocab_file", str(tmp_path / "mine.model"))
    # The warm-up is longer, so that no model is scored.
    settings = "warmup_steps=100000,eval_steps="
    arguments = run.arguments(f"train_steps=100000,{settings}2")
    process = run_command.start("train", *arguments, *given)
    lines = []
    for line in process.stderr:
        lines.append(line)
        if line.startswith("step 2: validation loss"):
            process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    assert process.stdout.read() == ""
    assert lines[-1] == "interrupted\n"
    assert lines[-2].startswith("stopped at step ")
    assert lines[-2].endswith(" saved a checkpoint; run the same command to resume\n")
    assert not any("Traceback" in line for line in lines)
    assert not any("building a vocabulary" in line for line in lines)
    assert not (run.model_dir / "result.json").exists()
    written = (run.model_dir / "vocab.model").read_bytes()
    assert written == (trained.model_dir / "vocab.model").read_bytes()
    process.stdout.close()
    process.stderr.close()
    shorter = [*run.arguments(f"{settings}0"), "--train_steps", "4"]
    completed = run_command.run("train", *shorter, *given)
    assert completed.status == 0, completed.err
    assert json.loads(completed.out)["steps"] >= 2
    assert "resuming from step" in completed.err or "steps are done" in completed.err
