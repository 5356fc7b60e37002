"""Fixtures and settings of all tests."""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

# TensorFlow reads the variables at import, so they are set before test modules are
# loaded. XLA compiles in half the time without LLVM's optimizations.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

import pytest

from tests import forks, tiny

if TYPE_CHECKING:
    from t2t_repro.tokenizers.tokenizer import Tokenizer

# Garbage collection of the many objects of imported modules would take a tenth of the
# tests' time.
gc.disable()


def pytest_collection_finish() -> None:
    """Enables garbage collection, except for the objects of imported modules.

    It is less frequent than by default, because traced graphs have many objects, but
    little garbage.
    """
    gc.freeze()
    gc.set_threshold(100_000)
    gc.enable()


@pytest.fixture(autouse=True)
def reference_implementations() -> Iterator[None]:
    """Removes optimized implementations that a command has installed in a test."""
    yield
    if "t2t_repro.fast" in sys.modules:
        sys.modules["t2t_repro.fast"].uninstall()


@pytest.fixture
def fast_implementations() -> None:
    """Installs the optimized implementations of `t2t_repro.fast`."""
    from t2t_repro import fast

    fast.install()


@pytest.fixture
def fake_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes TensorFlow list a GPU."""
    import tensorflow as tf

    real = tf.config.list_physical_devices
    monkeypatch.setattr(
        tf.config,
        "list_physical_devices",
        lambda kind=None: [*real(kind), "GPU:0"] if kind == "GPU" else real(kind),
    )


@pytest.fixture
def forked_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets programs that run `sys.executable` share one import of TensorFlow."""
    monkeypatch.setattr(sys, "executable", forks.python())


@pytest.fixture
def tensorflow_log(
    caplog: pytest.LogCaptureFixture,
) -> Iterator[pytest.LogCaptureFixture]:
    """Yields TensorFlow's Python log, which contains warnings about retracing."""
    logger = logging.getLogger("tensorflow")
    logger.addHandler(caplog.handler)
    yield caplog
    logger.removeHandler(caplog.handler)


@pytest.fixture
def sixteen_cores(
    monkeypatch: pytest.MonkeyPatch, tensorflow_log: pytest.LogCaptureFixture
) -> pytest.LogCaptureFixture:
    """Simulates 16 cores, so that 16 threads start; returns `tensorflow_log`."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(16))
    return tensorflow_log


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """Folder of reference data: $T2T_REPRO_SHARED, or `shared` next to the repository.

    Tests that need it are skipped if it does not exist.
    """
    default = Path(__file__).resolve().parents[2] / "shared"
    path = Path(os.environ.get("T2T_REPRO_SHARED") or default)
    if not path.is_dir():
        pytest.skip(f"no reference data in {path}; set T2T_REPRO_SHARED to the folder")
    return path


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """Tokenizer of the tiny corpus."""
    return tiny.tokenizer(tmp_path_factory.mktemp("vocabulary"))


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tiny.Trained:
    """A tiny model trained once with the train command; tests must not change it."""
    return tiny.train(tmp_path_factory.mktemp("trained"))


@pytest.fixture
def trained_copy(trained: tiny.Trained, tmp_path: Path) -> tiny.Trained:
    """A copy of the tiny model that a test may change."""
    return trained.copy_to(tmp_path / "copy")
