"""What the tests of several imports share."""

import pytest

from t2t_repro import fast


@pytest.fixture(params=["plain", "fast"])
def formulas(request):
    """Runs a test with the formulas as they are written, and with the tricks."""
    if request.param == "fast":
        fast.install("CPU")
    yield
    fast.uninstall()
