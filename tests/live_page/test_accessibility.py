"""Tests of the accessibility of each view of the live page with axe-core."""

import pytest

pytest.importorskip("selenium.webdriver", reason="selenium is absent")
from selenium.webdriver.support.ui import WebDriverWait

from tests.in_browser import findings

pytestmark = pytest.mark.medium

VIEWS = ("essay", "translate", "architecture", "attention", "whatif", "formulas")


@pytest.mark.parametrize("view", VIEWS)
def test_live_page_has_no_findings(shared_live, appearance, view):
    # A change of only the fragment would reload the page asynchronously.
    page = shared_live.page
    page.get("about:blank")
    page.get(f"{shared_live.address}#view={view}&text=one%20two")
    WebDriverWait(page, 60).until(lambda page: current(page) == f"to-{view}")
    assert findings(page) == []


def current(page):
    """Returns the id of the current view's link."""
    return page.execute_script(
        "const isEssay = document.querySelector('#essay').dataset.drawn;"
        "return (isEssay || document.querySelector('#view h2')) && "
        "document.querySelector('#views [aria-current]').id"
    )
