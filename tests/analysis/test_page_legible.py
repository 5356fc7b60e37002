"""Tests of the attention page's roles, contrast and layout in a real browser."""

import re

import numpy as np
import pytest

pytest.importorskip("selenium.webdriver", reason="selenium is absent")
from selenium.webdriver.common.by import By

from tests.in_browser import TEXT, at, scheme

pytestmark = pytest.mark.medium


def test_hostile_text_is_displayed_as_text(page):
    assert at(page, "text").text == TEXT
    assert page.find_elements(By.CSS_SELECTOR, "body b, body img") == []
    assert page.title.endswith(TEXT)
    assert len(page.find_elements(By.TAG_NAME, "script")) == 2


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


@pytest.mark.parametrize("wished", ["light", "dark"])
def test_light_and_dark_are_legible(page, wished):
    scheme(page, wished)
    at(page, "queries-1").click()

    def colour(selector, name):
        text = page.execute_script(
            "return getComputedStyle(document.querySelector(arguments[0]))"
            ".getPropertyValue(arguments[1])",
            *(selector, name),
        )
        return np.array([float(part) for part in re.findall(r"[\d.]+", text)[:3]])

    page_background = luminance(colour("body", "background-color"))
    assert (page_background > 0.5) == (wished == "light")
    for selector, least in {
        "body": 7,
        ".quiet": 4.5,
        "#status": 4.5,
        "#kinds .choice span": 4.5,
    }.items():
        background = colour(selector, "background-color")
        text = page.execute_script(
            "return getComputedStyle(document.querySelector(arguments[0]))"
            ".backgroundColor",
            selector,
        )
        is_transparent = text == "rgba(0, 0, 0, 0)"
        behind = page_background if is_transparent else luminance(background)
        assert contrast(luminance(colour(selector, "color")), behind) >= least


def luminance(colour):
    """Returns the relative luminance of sRGB values from 0 to 255 (WCAG 2.2)."""
    srgb = colour / 255
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    """Returns the contrast ratio of two luminances (WCAG 2.2)."""
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)


def test_narrow_window_needs_no_horizontal_scrolling(page):
    page.set_window_size(500, 900)
    wide, inner = page.execute_script(
        "return [document.documentElement.scrollWidth, innerWidth]"
    )
    assert wide <= inner
    left, right = at(page, "queries-0").rect, at(page, "keys-0").rect
    assert left["x"] + left["width"] <= right["x"]
