"""Tests of the essay: its parts, and the numbers in its figures."""

import re
from importlib.resources import files
from urllib.parse import quote

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("selenium.webdriver", reason="selenium is absent")
from selenium.webdriver.support.ui import WebDriverWait

from t2t_repro.models.attention_maps import attention_maps
from tests.live_page.live_model import call
from tests.run_command import ROOT

FOLDER = files("t2t_repro.live_page") / "essay"
SECTIONS = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
TEXT = "one two three"


@pytest.mark.parametrize("name", sorted(SECTIONS))
def test_section_is_complete(name):
    text = SECTIONS[name]
    questions = text.count("<details><summary>")
    assert questions == text.count("</p></details>")
    if name == "12_questions.html":
        assert questions >= 8
        return
    assert questions == 2
    for part in ('<p class="place">Section', '<p class="formula">', "data-figure="):
        assert part in text
    explanation = text.split("<div data-figure")[0].split("</h2>")[1]
    explanation = re.sub(r'<p class="formula">.*?</p>|<[^>]+>', "", explanation)
    assert 120 <= len(explanation.split()) <= 250
    codes = re.findall(r"<code>(.*?)</code>", text.split('<p class="code">')[1])
    paths = [ROOT / code for code in codes if code.endswith(".py")]
    contents = "".join(path.read_text(encoding="utf-8") for path in paths)
    assert paths
    for code in codes:
        assert code.endswith(".py") or code.split(".")[-1] in contents


@pytest.mark.medium
def test_figures_show_the_numbers_of_the_model(live):
    """Compares weights of attention and losses with those of Python."""
    page = live.page
    page.get("about:blank")
    page.get(f"{live.address}#text={quote(TEXT)}&word=1&layer=1&head=1")
    drawn = "return document.getElementById('essay').dataset.drawn"
    WebDriverWait(page, 60).until(lambda page: page.execute_script(drawn) == TEXT)
    for place in page.find_elements("css selector", "[data-figure]"):
        assert place.find_elements("tag name", "figure")
        assert "Look at" in place.text
    source = live.ids(TEXT)
    reference = page.find_element("id", "essay-reference").get_attribute("value")
    target = live.ids(reference)
    inputs, targets = tf.constant([source]), tf.constant([target])
    weights = attention_maps(live.model, inputs, targets)
    shown = read_bars(page, "lookup")
    expected = weights["encoder/layer_1/self_attention"][0, 1, 1]
    np.testing.assert_allclose(shown, 100 * expected, atol=0.051)
    log_probs = log_probabilities(live, source, target)
    losses = -log_probs[range(len(target)), target]
    np.testing.assert_allclose(read_bars(page, "training"), losses, atol=6e-4)


@pytest.mark.medium
def test_training_and_translation_are_side_by_side(live):
    """Training reads the reference, and generation the model's own tokens."""
    page = live.page
    page.get("about:blank")
    page.get(f"{live.address}#text={quote(TEXT)}&reference=eins%20drei")
    sides = "[data-figure=training] .scroll tbody tr"
    WebDriverWait(page, 60).until(
        lambda page: page.find_elements("css selector", sides)
    )
    rows = [
        [cell.text for cell in row.find_elements("tag name", "td")]
        for row in page.find_elements("css selector", sides)
    ]
    source = live.ids(TEXT)
    target, own = live.ids("eins drei"), page.execute_script("return found.result.ids")
    assert target != own
    best = log_probabilities(live, source, target).max(axis=1)
    written = log_probabilities(live, source, own)[range(len(own)), own]
    for column, expected in enumerate((best, written)):
        cells = [row[column] for row in rows if row[column]]
        shares = [float(re.search(r"([\d.]+) %\)$", cell)[1]) for cell in cells]
        np.testing.assert_allclose(shares, 100 * np.exp(expected), atol=0.051)
    # The second token of the reference is the third input.
    (second,) = call(page, "decodeEach", target[1:2])
    assert second in rows[2][0].split("\N{RIGHTWARDS ARROW}")[0]


def log_probabilities(live, source, target):
    """Returns the log probabilities (target, vocabulary) of teacher forcing."""
    inputs = {"inputs": tf.constant([source]), "targets": tf.constant([target])}
    return tf.nn.log_softmax(live.model(inputs)).numpy()[0]


@pytest.mark.medium
def test_experiment_states_its_result_in_numbers(live):
    """Translation meets no later tokens, so removing the causal mask has no effect."""
    page = live.page
    button = "[data-figure=masks] .experiment button"
    WebDriverWait(page, 60).until(
        lambda page: page.find_elements("css selector", button)
    )
    page.execute_script(f"document.querySelector('{button}').click()")
    outcome = (
        "return document.querySelector('[data-figure=masks] .experiment').innerText"
    )
    same = "2 of 2 translations stay the same."
    WebDriverWait(page, 60).until(lambda page: same in page.execute_script(outcome))
    losses = re.findall(r"\d+\.\d\d", page.execute_script(outcome))
    assert len({*losses}) == 2


def read_bars(page, figure):
    """Returns the numbers of the first bars of a figure."""
    script = (
        "const bars = document.querySelector(`[data-figure=${arguments[0]}] .bars`);"
        "return [...bars.querySelectorAll('.value')].map((each) => each.textContent)"
    )
    texts = page.execute_script(script, figure)
    return [float(re.sub("[ %<]", "", text.replace("\u2212", "-"))) for text in texts]
