"""A model's live page, opened in a real browser."""

import pytest

from tests import in_browser
from tests.live_page.live_model import Live

browser, width, wished = in_browser.browser, in_browser.width, in_browser.wished


@pytest.fixture(scope="module")
def live_made(browser, tmp_path_factory):
    return Live(browser, tmp_path_factory.mktemp("live"))


@pytest.fixture
def live(live_made):
    """The page as it is opened, whatever the browser has shown since."""
    live_made.open()
    return live_made
