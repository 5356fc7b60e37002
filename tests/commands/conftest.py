"""Fixtures of the commands' tests."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from tests import run_command, tiny


@pytest.fixture(scope="session")
def exported(
    trained: tiny.Trained, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, Any]]:
    """Exports the tiny model once; returns the folder and the command's result.

    Tests must not change the folder.
    """
    folder = tmp_path_factory.mktemp("commands") / "exported"
    flags = ("--model_dir", str(trained.model_dir), "--export_dir", str(folder))
    completed = run_command.run("export", *flags, "--json", "--licence", "CC0-1.0.")
    assert completed.status == 0, completed.err
    return folder, json.loads(completed.out)


@pytest.fixture
def without_tracing() -> Iterator[None]:
    """Runs steps as single operations: tracing takes longer than a few small steps.

    TensorFlow warns that the functions of data pipelines are traced nevertheless.
    """
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)
