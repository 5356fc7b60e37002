"""The load test asks real servers, and counts what they answer."""

import json

import pytest
from load_test import measure

from t2t_repro.serving.transport import Server
from t2t_repro.system.errors import UserError
from tests import run_command, tiny

LINES = [source for source, _ in tiny.pairs("test")]


@pytest.mark.medium
def test_the_harness_is_measured_with_and_without_batching(trained, tmp_path):
    flags = ("--model_dir", str(trained.model_dir), "--export_dir", str(tmp_path / "e"))
    assert run_command.run("export", *flags).status == 0
    source = tmp_path / "source.txt"
    source.write_text("".join(f"{line}\n" for line in LINES))
    done = run_command.run_alone(
        *("tools/load_test.py", "--json", "--export_dir", str(tmp_path / "e")),
        *("--model", "model", "--source_file", str(source), "--protocol", "rest"),
        *("--clients", "4", "--requests", "24", "--batch_size", "3"),
    )
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert found["load"] == {"clients": 4, "requests": 24, "batch_size": 3}
    batching, alone = found["measured"]
    assert (batching["name"], alone["name"]) == ("batching", "no batching")
    for each in (batching, alone):
        assert each["requests"] == 24
        assert 24 <= each["sentences"] <= 72
        rate = each["sentences"] / each["seconds"]
        assert each["sentences_per_second"] == pytest.approx(rate, rel=0.1)
        times = [each["latency_ms"][key] for key in ("50", "90", "99", "100")]
        assert times == sorted(times)
        assert 0 < times[-1] <= each["seconds"] * 1000 + 10


def test_a_server_that_is_not_there_ends_the_test():
    nobody = Server("127.0.0.1", 1, "model", "rest", retries=0)
    with pytest.raises(UserError, match="no server answers"):
        measure("nobody", nobody, LINES, clients=4, requests=10, batch_size=1)
