"""The benchmark of an export measures the same work on both sides."""

import json

import pytest

from tests import run_command, tiny

TOOL = "tools/benchmark_export.py"


@pytest.mark.medium
@pytest.mark.parametrize("random", [False, True])
def test_every_figure_is_measured(trained, tmp_path, random):
    source = tmp_path / "source.txt"
    lines = [source for source, _ in tiny.pairs("train")][:10]
    source.write_text("".join(f"{line}\n" for line in lines))
    model = ["--model_dir", str(trained.model_dir)]
    if random:
        hparams = f"{trained.hparams},vocab_divisor=512"
        vocabulary = str(trained.model_dir / "vocab.model")
        model = ["--hparams", hparams, "--vocab_file", vocabulary]
    sizes = ("--source_file", str(source), "--batch_size", "4", "--rounds", "1")
    done = run_command.run(TOOL, *model, *sizes, "--json")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert found["lines"] == found["equal_lines"] == 10
    # Of three batches in one round, the median of three ratios.
    rates = found["tokens_per_second"] / found["in_process_tokens_per_second"]
    assert found["ratio"] == pytest.approx(rates, rel=0.5)
    assert found["processor_ratio"] > 0
    assert found["tokens"] >= 10
    # Four bytes a weight, and the graph.
    assert found["size_mib"] * 2**20 > 4 * found["parameters"]
    assert found["memory_mib"] >= found["memory_loaded_mib"] > 0
    assert min(found["export_seconds"], found["load_seconds"]) > 0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "say either --model_dir or --hparams"),
        (["--model_dir", "a", "--hparams", "b"], "say either"),
        (["--hparams", "base"], "--hparams needs a vocabulary"),
    ],
)
def test_what_is_missing_is_said(tmp_path, flags, message):
    done = run_command.run(TOOL, *flags, "--source_file", str(tmp_path / "none"))
    assert run_command.is_one_clear_line(done)
    assert message in done.err
