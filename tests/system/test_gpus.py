"""A GPU that is there and cannot be used, as far as that can be had without one."""

import pytest

from t2t_repro.system import gpus
from tests import run_command


@pytest.fixture
def driver(tmp_path, monkeypatch):
    """A file where NVIDIA's driver would have one; its library is not there."""
    file = tmp_path / "nvidia0"
    file.touch()
    monkeypatch.setattr(gpus, "DRIVER_FILES", (tmp_path / "absent", file))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return file


@pytest.mark.medium
def test_the_cause_is_told_as_tensorflow_names_it(driver):
    told = gpus.why_unused()
    assert told is not None
    assert "\n" not in told
    assert (
        f"there is one ({driver}): Could not find cuda drivers on your machine" in told
    )
    assert 'pip install "t2t_repro[cuda]"' in told


@pytest.mark.medium
def test_commands_tell_it_once_and_go_on(driver, trained):
    model = str(trained.model_dir)
    done = run_command.run("translate", "--model_dir", model, stdin=b"one two\n")
    assert done.status == 0
    assert done.out.count("\n") == 1
    assert done.err.count("no GPU is used although there is one") == 1


@pytest.mark.parametrize("devices", ["", "-1"])
def test_one_that_is_hidden_on_purpose_is_not_spoken_of(driver, monkeypatch, devices):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", devices)
    assert gpus.why_unused() is None


def test_where_there_is_none_nothing_is_said(driver):
    driver.unlink()
    assert gpus.why_unused() is None
