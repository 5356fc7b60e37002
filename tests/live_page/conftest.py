"""Fixtures of the live page in a real browser."""

import pytest

from tests import in_browser
from tests.live_page.live_model import Live

browser, appearance = in_browser.browser, in_browser.appearance


@pytest.fixture(scope="module")
def shared_live(browser, tmp_path_factory):
    return Live(browser, tmp_path_factory.mktemp("live"))


@pytest.fixture
def live(shared_live):
    """Live page, reloaded for each test."""
    shared_live.open()
    return shared_live
