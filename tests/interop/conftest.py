"""Fixtures of the import tests."""

import pytest

from t2t_repro import fast


@pytest.fixture(params=["plain", "fast"])
def formulas(request):
    """Runs a test with the reference and with the optimized implementations."""
    if request.param == "fast":
        fast.install("CPU")
    yield
    fast.uninstall()
