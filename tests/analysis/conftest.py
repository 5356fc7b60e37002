"""Fixtures of the attention page in a real browser."""

import json

import pytest

from t2t_repro.analysis.inspect_translation import inspect_translation
from t2t_repro.analysis.page import attention_page
from t2t_repro.decoding.config import DecodingConfig
from tests import in_browser, tiny
from tests.in_browser import TEXT, scheme

browser, appearance = in_browser.browser, in_browser.appearance


@pytest.fixture(scope="session")
def inspected(tokenizer):
    """Inspection of a translation, and the tokenizer."""
    model = tiny.random_model(num_layers=2)
    search = DecodingConfig(3, extra_length=10, length_factor=0.0)
    return inspect_translation(model, tokenizer, TEXT, None, search), tokenizer


@pytest.fixture(scope="session")
def address(inspected, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "attention.html"
    path.write_text(attention_page(*inspected, "model"), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def page(browser, address):
    """Initial page: the last layer of the cross-attention with all heads.

    Fails if the page logs messages or requests any other address.
    """
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
    requests = {
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    }
    assert requests == {address}
