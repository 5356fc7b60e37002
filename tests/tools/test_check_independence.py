"""Tests of the comparison of translations in different batches."""

import json

import pytest

from tests import run_command, tiny


@pytest.mark.medium
def test_a_model_translates_equally_in_all_batches(trained, tmp_path):
    text = tmp_path / "text.en"
    lines = [source for source, _ in tiny.pairs("train")][:12]
    text.write_text("".join(f"{line}\n" for line in lines))
    process = run_command.run_alone(
        "tools/check_independence.py",
        *("--model_dir", str(trained.model_dir), "--input_file", str(text)),
        *("--batch_sizes", "1,5", "--json"),
    )
    assert process.status == 0, process.err
    result = json.loads(process.out)
    assert (result["lines"], result["passed"]) == (12, True)
    assert len(result["ways"]) == 4
