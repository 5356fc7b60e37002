"""A model's page, opened in a real browser."""

import json
import shutil

import pytest

from t2t_repro.analysis.inspect_translation import inspect_translation
from t2t_repro.analysis.page import attention_page
from t2t_repro.decoding.config import DecodingConfig
from tests import tiny
from tests.analysis.live_model import Live
from tests.analysis.on_page import TEXT, scheme

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu"),
    *("--disable-dev-shm-usage", "--window-size=1200,1000"),
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


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    tokenizer = tiny.tokenizer(tmp_path_factory.mktemp("vocabulary"))
    model = tiny.random_model(num_layers=2)
    return inspect_translation(
        model, tokenizer, TEXT, None, DecodingConfig(3, extra_length=4)
    ), tokenizer


@pytest.fixture(scope="module")
def address(seen, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "attention.html"
    path.write_text(attention_page(*seen, "model"), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def page(browser, address):
    """The page as it is opened: the last layer of the cross-attention, all heads."""
    scheme(browser, "light")
    browser.set_window_size(1200, 1000)
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get(address)
    yield browser
    assert [entry["message"] for entry in browser.get_log("browser")] == []
    messages = [
        json.loads(entry["message"])["message"]
        for entry in browser.get_log("performance")
    ]
    asked = {
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    }
    assert asked == {address}


@pytest.fixture(scope="module")
def live_made(browser, tmp_path_factory):
    return Live(browser, tmp_path_factory.mktemp("live"))


@pytest.fixture
def live(live_made):
    """The page as it is opened, whatever the browser has shown since."""
    live_made.open()
    return live_made
