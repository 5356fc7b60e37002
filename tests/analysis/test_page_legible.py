"""Tests of the attention page's roles, colors and layout in a real browser."""

import re

import pytest

pytest.importorskip("selenium.webdriver", reason="selenium is absent")

from tests.in_browser import at, scheme

pytestmark = pytest.mark.medium


def test_interactive_elements_have_roles_and_names(page):
    nodes = page.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    names = {}
    for node in nodes:
        if not node["ignored"]:
            name = node.get("name", {}).get("value", "").strip()
            names.setdefault(node["role"]["value"], []).append(name)
    for role, least in {
        "listbox": 2,
        "option": 4,
        "tree": 1,
        "treeitem": 4,
        "radio": 5,
        "checkbox": 2,
        "button": 3,
        "heading": 4,
        "main": 1,
    }.items():
        assert len(names[role]) >= least, role
        assert role == "main" or all(names[role]), role
    assert len(names["status"]) == 2


@pytest.mark.parametrize(("wished", "is_light"), [("light", True), ("dark", False)])
def test_background_has_the_requested_brightness(page, wished, is_light):
    # `test_accessibility.py` checks the contrast of all texts with both.
    scheme(page, wished)
    colour = page.execute_script(
        "return getComputedStyle(document.body).backgroundColor"
    )
    red, green, blue = map(int, re.findall(r"\d+", colour)[:3])
    assert (red + green + blue > 3 * 128) == is_light


def test_narrow_window_needs_no_horizontal_scrolling(page):
    page.set_window_size(500, 900)
    wide, inner = page.execute_script(
        "return [document.documentElement.scrollWidth, innerWidth]"
    )
    assert wide <= inner
    left, right = at(page, "queries-0").rect, at(page, "keys-0").rect
    assert left["x"] + left["width"] <= right["x"]
