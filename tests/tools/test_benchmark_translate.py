"""Tests of the benchmark of start-up time and memory, with a small vocabulary."""

import json

import pytest

from tests import run_command

TOOL = "tools/benchmarks/benchmark_translate.py"


@pytest.mark.medium
def test_compares_one_line_and_a_file_with_the_import_and_ctranslate2():
    flags = ["--sizes=tiny", "--vocab_size=600", "--rounds=1", "--json"]
    flags += ["--lines=100", "--length=6"]
    result = run_command.run_alone(TOOL, *flags)
    assert result.status == 0, result.err
    line, file = json.loads(result.out)["tables"].values()
    imported, tiny = line["import tensorflow"], line["tiny"]
    assert "beyond the import" not in imported
    (before,), (after,) = imported["processor s"], tiny["processor s"]
    assert tiny["beyond the import"] == pytest.approx(after / before - 1)
    seconds = {name: row["s"][0] for name, row in file.items()}
    for precision in ("float32", "int8"):
        ours, peer = (f"{name} {precision}" for name in ("t2t_repro", "CTranslate2"))
        assert file[ours]["lines/s"] == pytest.approx(100 / seconds[ours])
        assert file[ours]["times as fast"] * seconds[ours] == pytest.approx(
            seconds[peer]
        )
        both = seconds["import tensorflow"] + seconds[peer]
        assert file[ours]["of import and CTranslate2"] * both == pytest.approx(
            seconds[ours]
        )
