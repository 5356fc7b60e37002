"""What every test shares: a quiet TensorFlow and the folder of reference data."""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

# TensorFlow reads it at import, so it must be set before any test module is.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import pytest

from tests import tiny

# What the imports make stays, and there is much of it: looking for garbage in it takes
# a tenth of the time that the tests do.
gc.disable()


def pytest_collection_finish() -> None:
    """Lets garbage be collected, but not looked for in what was imported."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def plain_formulas() -> Iterator[None]:
    """Every test begins with the reference implementations; commands install others."""
    yield
    if "t2t_repro.fast" in sys.modules:
        sys.modules["t2t_repro.fast"].uninstall()


@pytest.fixture
def fast_formulas() -> None:
    """Installs the optimized implementations of `t2t_repro.fast`."""
    from t2t_repro import fast

    fast.install()


@pytest.fixture
def sixteen_cores(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Iterator[pytest.LogCaptureFixture]:
    """Lets the process believe in 16 cores, so that as many threads begin at once.

    What TensorFlow's Python part logs meanwhile is in it.
    """
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(16))
    logger = logging.getLogger("tensorflow")
    logger.addHandler(caplog.handler)
    yield caplog
    logger.removeHandler(caplog.handler)


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder of reference data that is kept beside the repository.

    It is $T2T_REPRO_SHARED if that is set, else `shared` next to the checkout.
    Tests that need it are skipped where it is absent.
    """
    default = Path(__file__).resolve().parents[2] / "shared"
    path = Path(os.environ.get("T2T_REPRO_SHARED") or default)
    if not path.is_dir():
        pytest.skip(f"no reference data at {path}; set T2T_REPRO_SHARED to the folder")
    return path


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tiny.Trained:
    """A tiny model, trained once by the real command; tests must not change it."""
    return tiny.train(tmp_path_factory.mktemp("trained"))


@pytest.fixture
def trained_copy(trained: tiny.Trained, tmp_path: Path) -> tiny.Trained:
    """A copy of it that a test may change."""
    return trained.copy_to(tmp_path / "copy")
