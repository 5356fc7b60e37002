"""Tests of the live page's figures against the model in Python."""

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("selenium.webdriver", reason="selenium is absent")

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from t2t_repro.analysis.beam_trace import trace_beam
from t2t_repro.models.attention_maps import attention_maps
from t2t_repro.models.cached_decoder import CachedDecoder
from tests.live_page.live_model import SEARCH
from tests.live_page.test_page import show

pytestmark = pytest.mark.medium

TEXT = "one two three"
CROSS = "decoder/layer_1/cross_attention"


def weights_of(live, model):
    """Returns the weights (heads, queries, keys) of `CROSS` for the translation."""
    ids = live.page.execute_script("return found.result.ids")
    source, target = (tf.constant([each]) for each in (live.ids(TEXT), ids))
    return attention_maps(model, source, target)[CROSS].numpy()[0]


def drawn_lines(page):
    """Clicks the second query and returns the weight of each line by head and key."""
    (queries,) = page.find_elements(By.CSS_SELECTOR, "#view [id$=-queries]")
    queries.find_elements(By.TAG_NAME, "li")[1].click()
    lines = page.execute_script(
        "return [...document.querySelectorAll('#view .lines path')].map("
        "({ dataset }) => [dataset.head, dataset.pair, Number(dataset.weight)])"
    )
    return {(int(head), pair): weight for head, pair, weight in lines}


def expected_lines(weights):
    return {
        (head, f"1-{key}"): pytest.approx(weight, abs=1e-4)
        for head, rows in enumerate(weights)
        for key, weight in enumerate(rows[1])
        if weight >= 0.02
    }


def test_arcs_and_cells_show_the_attention_weights(live):
    show(live, view="attention", kind="decoder/cross", layer=1, head=1, text=TEXT)
    weights = weights_of(live, live.model)
    assert drawn_lines(live.page) == expected_lines(weights)
    *_, drawing = live.page.find_elements(By.CSS_SELECTOR, "#view .matrix")
    drawing.send_keys(Keys.HOME, Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    told = drawing.find_element(By.XPATH, "following-sibling::output").text
    value = float(told.rsplit(": ", 1)[1].removesuffix(" %"))
    assert value == pytest.approx(100 * weights[1, 1, 1], abs=0.06)


def test_changes_apply_to_the_attention_shown_with_them(live):
    show(
        live, view="whatif", kind="decoder/cross", layer=1, off="noPositions", text=TEXT
    )
    weights = weights_of(live, live.new_model(position="none"))
    assert drawn_lines(live.page) == expected_lines(weights)


def test_search_tree_has_the_hypotheses_of_the_search(live):
    show(live, text=TEXT)
    nodes = live.page.execute_script("return searchNodes(found.result)")
    trace = trace_beam(CachedDecoder(live.model, 3), tuple(live.ids(TEXT)), SEARCH)
    expected = {
        each.ids: each.log_prob
        for step in trace.steps
        for each in (*step.alive, *step.ended)
    }
    assert {
        tuple(node["ids"]): pytest.approx(node["logProb"], rel=2e-5)
        for node in nodes[1:]
    } == expected
    assert len(live.page.find_elements(By.CSS_SELECTOR, "[role=treeitem]")) == len(
        nodes
    )
    best = next(node["ids"] for node in nodes if node["result"] == 0)
    assert tuple(best) == trace.results[0].ids


def test_hops_and_bars_follow_their_formulas(live):
    show(live, view="formulas")
    for count in (2, 3, 9, 10, 27, 60):
        places = live.page.execute_script(f"return dilatedHops({count}, 3)")
        assert places[0] == 0
        assert places[-1] == count - 1
        # Layer l of a kernel of 3 reaches back by 0, 1 or 2 times 3^l words.
        for layer, hop in enumerate(np.diff(places)):
            assert hop in (0, 3**layer, 2 * 3**layer)
        assert 3 ** (len(places) - 2) < count <= 3 ** (len(places) - 1)
    products = [
        float(each.text.split(": ")[1].replace("\N{MINUS SIGN}", "-"))
        for each in live.page.find_elements(By.CSS_SELECTOR, ".bars tbody th")
    ]
    widths = live.page.execute_script(
        "return [...document.querySelectorAll('.bars .bar')]"
        ".map((bar) => parseFloat(bar.style.width))"
    )
    for series, scale in ((0, 1), (1, 8)):  # d_k = 64
        powers = np.exp(np.array(products) / scale)
        expected = 100 * powers / powers.sum()
        np.testing.assert_allclose(widths[series::2], expected, atol=0.3)
