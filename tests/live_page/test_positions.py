"""The positions of the live page turn as the rotation formula says (section 3.5)."""

import math
import re

import numpy as np
import pytest

pytest.importorskip("selenium.webdriver", reason="selenium is absent")
from selenium.webdriver.support.ui import WebDriverWait

from tests.live_page.live_model import SIZES, Live

pytestmark = pytest.mark.medium

POS, K = 7, 9


def formulas(live, **chosen):
    """Opens the view; returns its text once it is drawn."""
    values = "&".join(f"{key}={value}" for key, value in chosen.items())
    live.page.get("about:blank")
    live.page.get(f"{live.address}#view=formulas&{values}")
    WebDriverWait(live.page, 60).until(
        lambda page: page.execute_script("return !!document.querySelector('#view h2')")
    )
    return live.page.find_element("id", "view").text


def numbers(text):
    found = re.findall(r"-?[\d.]+(?:e-?\d+)?", text.replace("\N{MINUS SIGN}", "-"))
    return [float(each) for each in found]


# Radians per position of pair i of 16 channels, and where its sine and cosine stand.
FORMULAS = {
    "sinusoid": lambda i: 10_000 ** (-i / 7),  # tensor2tensor's: the last is exact
    "sinusoid_halves": lambda i: 10_000 ** (-2 * i / 16),
    "sinusoid_paper": lambda i: 10_000 ** (-2 * i / 16),
}


@pytest.mark.parametrize("position", FORMULAS)
def test_a_later_position_is_the_earlier_one_turned(browser, tmp_path, position):
    live = Live(browser, tmp_path, position=position)
    formulas(live, pos=POS, k=K)
    assert SIZES["d_model"] == 16
    cells = live.page.execute_script(
        "return [...document.querySelectorAll('.circles + .scroll tbody tr')]"
        ".map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    # Six of the eight pairs, from the fastest to the slowest.
    assert [int(row[0]) for row in cells] == [0, 1, 3, 4, 6, 7]
    drawn = live.page.execute_script(
        "return [...document.querySelectorAll('.circles svg')].map((svg) => "
        "['before', 'after'].map((name) => svg.querySelector(`circle.${name}`))"
        ".map(({ cx, cy }) => [cx.baseVal.value / 100, -cy.baseVal.value / 100]))"
    )
    assert len(drawn) == 6
    for (pair, rate, angle, *points), circles in zip(cells, drawn, strict=True):
        omega = FORMULAS[position](int(pair))
        assert float(rate) == pytest.approx(omega, rel=1e-3)
        degrees = math.degrees(K * omega)
        assert numbers(angle) == [pytest.approx(degrees, abs=6e-3)]
        here, there = (
            [math.cos(at * omega), math.sin(at * omega)] for at in (POS, POS + K)
        )
        cos, sin = math.cos(K * omega), math.sin(K * omega)
        turned = np.array([[cos, -sin], [sin, cos]]) @ here
        np.testing.assert_allclose(turned, there, atol=1e-12)
        np.testing.assert_allclose(
            [numbers(text) for text in points], [here, turned, there], atol=6e-5
        )
        np.testing.assert_allclose(circles, [here, there], atol=1e-5)


def test_what_is_chosen_moves_the_points(live):
    formulas(live, pos=POS, k=K)
    live.page.execute_script(
        "const [, k, pair] = document.querySelectorAll('.controls input');"
        "for (const [input, value] of [[k, 0], [pair, 6]]) {"
        "  input.value = value; input.dispatchEvent(new Event('input'));"
        "}"
    )
    rows = live.page.execute_script(
        "return [...document.querySelectorAll('.circles + .scroll tbody tr')]"
        ".map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    assert [row[0] for row in rows] == ["6", "7"]
    assert all(row[3] == row[4] == row[5] for row in rows)
    assert "k=0&pair=6" in live.page.current_url


@pytest.mark.parametrize(
    ("position", "told"),
    [("learned", "learned positional embeddings"), ("none", "no positional encoding")],
)
def test_a_model_without_sinusoids_says_so(browser, tmp_path, position, told):
    assert told in formulas(Live(browser, tmp_path, position=position))
    assert browser.find_elements("css selector", ".circles") == []
