"""Nothing that axe-core calls serious or critical is in any view of either page."""

from importlib.resources import files

import pytest

pytest.importorskip("selenium.webdriver", reason="selenium is absent")
from selenium.webdriver.support.ui import WebDriverWait

from tests.analysis.on_page import at, narrow, scheme

pytestmark = pytest.mark.medium

CHECKER = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
# Those off by default too: the rule that a name holds the text that is seen is one.
RULES = (
    *("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"),
    *("best-practice", "experimental"),
)
VIEWS = ("translate", "architecture", "attention", "whatif", "formulas")


def findings(page):
    """Returns what a checker finds serious: rule, impact, where."""
    # Tables are made when they are opened.
    page.execute_script(
        "document.querySelectorAll('details').forEach((each) => (each.open = true))"
    )
    page.set_script_timeout(300)
    page.execute_script(CHECKER)
    found = page.execute_async_script(
        "const [options, done] = arguments; axe.run(options).then(done, done)",
        {"runOnly": RULES, "resultTypes": ["violations"]},
    )
    assert len(found["passes"]) > 20
    return [
        (each["id"], each["impact"], [node["target"] for node in each["nodes"]])
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
    ]


@pytest.fixture(params=["light", "dark"])
def wished(request, browser):
    scheme(browser, request.param)
    yield request.param
    scheme(browser, "light")


@pytest.fixture(params=["wide", "narrow"])
def width(request, browser):
    with narrow(browser, 400 if request.param == "narrow" else 1200):
        yield request.param


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


def test_the_attention_page(page, wished, width):
    assert findings(page) == []
    at(page, "queries-1").click()
    assert findings(page) == []


def test_what_is_wrong_is_found(page):
    page.execute_script("document.querySelector('h1').style.color = '#eee'")
    assert [(rule, impact) for rule, impact, _ in findings(page)] == [
        ("color-contrast", "serious")
    ]
