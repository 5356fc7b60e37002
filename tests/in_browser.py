"""A browser for the tests of pages, and a checker of their accessibility."""

import shutil
from contextlib import contextmanager
from importlib.resources import files

import pytest

HOSTILE = "<img src=x onerror=alert(1)>"
TEXT = f"one two </script><b>three</b> {HOSTILE}"

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu"),
    *("--disable-dev-shm-usage", "--window-size=1200,1000"),
)
# Those off by default too: the rule that a name holds the text that is seen is one.
RULES = (
    *("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"),
    *("best-practice", "experimental"),
)


@pytest.fixture(scope="module")
def browser():
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is absent")
    from selenium.webdriver.chrome.service import Service

    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if not program or not driver:
        pytest.skip("no chromium with its chromedriver on this machine")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.set_capability(
        "goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"}
    )
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    yield chrome
    chrome.quit()


def scheme(browser, value):
    """Sets what a person wishes: "light" or "dark"."""
    features = [{"name": "prefers-color-scheme", "value": value}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


@contextmanager
def narrow(browser, width):
    """Lays pages out for a width in pixels; a window cannot be as narrow as a phone."""
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def at(page, name):
    """Returns the element with an id."""
    return page.find_element("id", name)


def findings(page):
    """Returns what a checker finds serious: rule, impact, where."""
    # Tables are made when they are opened.
    page.execute_script(
        "document.querySelectorAll('details').forEach((each) => (each.open = true))"
    )
    page.set_script_timeout(300)
    checker = files("axe_playwright_python") / "axe.min.js"
    page.execute_script(checker.read_text(encoding="utf-8"))
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
