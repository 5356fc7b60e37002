"""Tests of the attention page's accessibility with axe-core."""

import pytest

pytest.importorskip("selenium.webdriver", reason="selenium is absent")

from tests.in_browser import at, findings

pytestmark = pytest.mark.medium


def test_attention_page_has_no_findings(page, appearance):
    assert findings(page) == []
    at(page, "queries-1").click()
    assert findings(page) == []


def test_checker_detects_low_contrast(page):
    page.execute_script("document.querySelector('h1').style.color = '#eee'")
    assert [(rule, impact) for rule, impact, _ in findings(page)] == [
        ("color-contrast", "serious")
    ]
