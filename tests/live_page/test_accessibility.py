"""Nothing that axe-core calls serious or critical is in any view of the live page."""

import pytest

pytest.importorskip("selenium.webdriver", reason="selenium is absent")
from selenium.webdriver.support.ui import WebDriverWait

from tests.in_browser import findings

pytestmark = pytest.mark.medium

VIEWS = ("translate", "architecture", "attention", "whatif", "formulas")


@pytest.mark.parametrize("view", VIEWS)
def test_the_live_page(live, wished, width, view):
    # A new part of the same address would reload the page by itself, at some moment.
    live.page.get("about:blank")
    live.page.get(f"{live.address}#view={view}&text=one%20two")
    WebDriverWait(live.page, 60).until(lambda page: shown(page) == f"to-{view}")
    assert findings(live.page) == []


def shown(page):
    return page.execute_script(
        "return document.querySelector('#view h2') && "
        "document.querySelector('#views [aria-current]').id"
    )
