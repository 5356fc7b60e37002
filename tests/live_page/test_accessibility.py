"""Tests of the accessibility of each view of the live page with axe-core."""

import pytest

pytest.importorskip("selenium.webdriver", reason="selenium is absent")
from selenium.webdriver.support.ui import WebDriverWait

from tests.in_browser import findings

pytestmark = pytest.mark.medium

VIEWS = ("translate", "architecture", "attention", "whatif", "formulas")


@pytest.mark.parametrize("view", VIEWS)
def test_live_page_has_no_findings(live, wished, width, view):
    # A change of only the fragment would reload the page asynchronously.
    live.page.get("about:blank")
    live.page.get(f"{live.address}#view={view}&text=one%20two")
    WebDriverWait(live.page, 60).until(lambda page: current(page) == f"to-{view}")
    assert findings(live.page) == []


def current(page):
    """Returns the id of the current view's link."""
    return page.execute_script(
        "return document.querySelector('#view h2') && "
        "document.querySelector('#views [aria-current]').id"
    )
