"""Nothing that axe-core calls serious or critical is on the attention page."""

import pytest

pytest.importorskip("selenium.webdriver", reason="selenium is absent")

from tests.in_browser import at, findings

pytestmark = pytest.mark.medium


def test_the_attention_page(page, wished, width):
    assert findings(page) == []
    at(page, "queries-1").click()
    assert findings(page) == []


def test_what_is_wrong_is_found(page):
    page.execute_script("document.querySelector('h1').style.color = '#eee'")
    assert [(rule, impact) for rule, impact, _ in findings(page)] == [
        ("color-contrast", "serious")
    ]
