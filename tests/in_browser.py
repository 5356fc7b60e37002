"""Browser for tests of pages, with an accessibility checker."""

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
# Includes rules that are off by default, for example that an accessible name must
# contain the visible text.
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
        pytest.skip("chromium or chromedriver is not installed")
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
    """Sets the preferred color scheme of the user: "light" or "dark"."""
    features = [{"name": "prefers-color-scheme", "value": value}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


@contextmanager
def narrow(browser, width, height=900):
    """Emulates a screen size in pixels, whose width can be less than a window's."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1}
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", metrics | {"mobile": False}
    )
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def at(page, name):
    """Returns the element with the id `name`."""
    return page.find_element("id", name)


def findings(page):
    """Returns serious accessibility violations as (rule, impact, elements)."""
    # Opening the tables creates their contents.
    page.execute_script(
        "document.querySelectorAll('details').forEach((each) => (each.open = true))"
    )
    page.set_script_timeout(300)
    checker = files("axe_playwright_python") / "axe.min.js"
    page.execute_script(checker.read_text(encoding="utf-8"))
    results = page.execute_async_script(
        "const [options, done] = arguments; axe.run(options).then(done, done)",
        {"runOnly": RULES, "resultTypes": ["violations"]},
    )
    assert len(results["passes"]) > 20
    return [
        (rule["id"], rule["impact"], [node["target"] for node in rule["nodes"]])
        for rule in results["violations"]
        if rule["impact"] in ("serious", "critical")
    ]


# Color schemes and widths do not depend on each other.
COMMON, OTHER = (("light", 1200), ("dark", 400)), (("light", 400), ("dark", 1200))


@pytest.fixture(
    params=[*COMMON, *(pytest.param(each, marks=pytest.mark.slow) for each in OTHER)],
    ids=lambda each: "-".join(map(str, each)),
)
def appearance(request, browser):
    """Chooses a preferred color scheme and a width in pixels."""
    wished, width = request.param
    scheme(browser, wished)
    with narrow(browser, width):
        yield
    scheme(browser, "light")
