"""Tests of positional encodings as rotations in the live page (section 3.5)."""

import math
import re

import numpy as np
import pytest

pytest.importorskip("selenium.webdriver", reason="selenium is absent")
from selenium.webdriver.support.ui import WebDriverWait

from tests import tiny
from tests.live_page.live_model import SIZES, Live

pytestmark = pytest.mark.medium

POS, K = 7, 9


def formulas(live, **settings):
    """Opens the view of the formulas and returns its text."""
    values = "&".join(f"{key}={value}" for key, value in settings.items())
    live.page.get("about:blank")
    live.page.get(f"{live.address}#view=formulas&{values}")
    WebDriverWait(live.page, 60).until(
        lambda page: page.execute_script("return !!document.querySelector('#view h2')")
    )
    return live.page.find_element("id", "view").text


def numbers(text):
    matches = re.findall(r"-?[\d.]+(?:e-?\d+)?", text.replace("\N{MINUS SIGN}", "-"))
    return [float(match) for match in matches]


def value_of(formula, pair):
    """Evaluates a formula of the page for a pair of 16 channels."""
    terms = {"\N{MINUS SIGN}": "-", "2i": f"2*{pair}", "d_model": "16", "i": pair}
    return eval(re.sub("|".join(terms), lambda match: terms[match[0]], formula))


# Radians per position of channel pair i, for 16 channels.
FORMULAS = {
    "sinusoid": lambda i: 10_000 ** (-i / 7),  # T2T: the last timescale is 10,000.
    "sinusoid_halves": lambda i: 10_000 ** (-2 * i / 16),
    "sinusoid_paper": lambda i: 10_000 ** (-2 * i / 16),
}


@pytest.mark.parametrize("position", FORMULAS)
def test_later_position_is_a_rotation_of_the_earlier_one(browser, tmp_path, position):
    live = Live(browser, tmp_path, position=position)
    live.assert_scores(tiny.pairs("train")[:2], live.model)
    formulas(live, pos=POS, k=K)
    assert SIZES["d_model"] == 16
    _, shown, *_ = live.page.find_elements("css selector", "#view .formula math")
    (exponent,) = re.findall(r"ω_i = 10000\^\((.*)\)", shown.get_attribute("alttext"))
    cells = live.page.execute_script(
        "return [...document.querySelectorAll('.circles + .scroll tbody tr')]"
        ".map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    # The page shows six of the eight pairs, from the fastest to the slowest.
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
        assert 10_000 ** value_of(exponent, pair) == pytest.approx(omega)
        degrees = math.degrees(K * omega)
        assert numbers(angle) == [pytest.approx(degrees, abs=6e-3)]
        before, after = (
            [math.cos(pos * omega), math.sin(pos * omega)] for pos in (POS, POS + K)
        )
        cos, sin = math.cos(K * omega), math.sin(K * omega)
        rotated = np.array([[cos, -sin], [sin, cos]]) @ before
        np.testing.assert_allclose(rotated, after, atol=1e-12)
        np.testing.assert_allclose(
            [numbers(text) for text in points], [before, rotated, after], atol=6e-5
        )
        np.testing.assert_allclose(circles, [before, after], atol=1e-5)


def test_controls_move_the_points(live):
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
    ("position", "message"),
    [("learned", "learned positional embeddings"), ("none", "no positional encoding")],
)
def test_model_without_sinusoids_has_a_message(browser, tmp_path, position, message):
    assert message in formulas(Live(browser, tmp_path, position=position))
    assert browser.find_elements("css selector", ".circles") == []
