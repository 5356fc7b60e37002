"""The way of the data at WMT's size, with a text of a thousand pairs."""

import json

import benchmark_input
import numpy as np
import pytest

from tests import run_command


def test_lines_are_as_long_as_those_of_wmt14():
    """116 and 110 million words in 4.5 million pairs."""
    generator = np.random.default_rng(0)
    lengths = np.concatenate(list(benchmark_input.lengths_of(generator, 200_000)))
    assert lengths.shape == (200_000, 2)
    assert lengths.min() >= 1
    np.testing.assert_allclose(lengths.mean(axis=0), [25.78, 24.44], rtol=0.01)
    # Long sentences have long translations.
    assert np.corrcoef(lengths.T)[0, 1] > 0.8


def test_a_line_has_as_many_words_as_it_should(tmp_path):
    benchmark_input.write_corpus(tmp_path, 1000)
    for lang, mean in (("en", 25.78), ("de", 24.44)):
        lines = (tmp_path / f"train.{lang}").read_text().splitlines()
        assert len(lines) == 1000
        found = np.mean([len(line.split()) for line in lines])
        assert found == pytest.approx(mean, rel=0.1)


@pytest.mark.medium
def test_every_stage_is_measured(tmp_path):
    flags = ("--pairs", "1000", "--batches", "3", "--work_dir", str(tmp_path))
    small = ("--hparams", "base,vocab_size=1000,tokens_per_batch=2000")
    done = run_command.run("tools/benchmark_input.py", *flags, *small, "--json")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert (found["pairs"], found["batches"]) == (1000, 3)
    assert found["target_tokens_per_second"] > 0
    assert found["prepare_seconds"] > found["first_batch_seconds"] > 0
    assert min(found["prepare_memory"], found["read_memory"]) > 1e8
    assert 0.5 < found["share"] <= 1
    assert list(tmp_path.iterdir()) == []
