"""Tests of the attention page in a real browser, with mouse and keyboard."""

import numpy as np
import pytest

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is absent")
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

from tests.in_browser import at  # noqa: E402

pytestmark = pytest.mark.medium

MINUS = "\N{MINUS SIGN}"


def choose(page, group, value):
    """Selects a radio button or a checkbox."""
    field = page.find_element(By.CSS_SELECTOR, f"#{group} input[value='{value}']")
    page.execute_script("arguments[0].click()", field)


def percentages_of(page, side):
    """Returns the percentage of each word in a column as a fraction, 0 if not shown."""
    texts = [
        item.text for item in page.find_elements(By.CSS_SELECTOR, f"#{side} .percent")
    ]
    return [float(text.removesuffix(" %")) / 100 if text else 0.0 for text in texts]


def drawn_lines(page):
    """Returns the weight of each drawn line by head and pair of words."""
    lines = page.execute_script(
        "return [...document.querySelectorAll('#lines path')].map((path) => "
        "[path.dataset.head, path.dataset.pair, Number(path.dataset.weight)])"
    )
    return {(head, pair): weight for head, pair, weight in lines}


def lines_of(weights, query, heads, least=0.02):
    """Returns the lines that the page should draw for a query, like `drawn_lines`.

    `weights` is float (heads, queries, keys). Weights below `least` are not drawn.
    """
    return {
        (str(head), f"{query}-{key}"): weight
        for head in heads
        for key, weight in enumerate(weights[head, query])
        if weight >= least
    }


def assert_lines(page, expected):
    lines = drawn_lines(page)
    assert lines.keys() == expected.keys()
    assert lines == pytest.approx(expected, abs=3e-5)


def test_click_on_query_shows_its_weights(page, inspected):
    weights = inspected[0].attention.cross[-1]
    at(page, "queries-1").click()
    percentages = percentages_of(page, "keys")
    expected = weights.mean(axis=0)[1]
    np.testing.assert_allclose(
        percentages, np.where(expected < 0.005, 0, expected), atol=6e-4
    )
    assert max(percentages) > 0.05
    assert percentages_of(page, "queries") == [0] * len(inspected[0].target)
    assert_lines(page, lines_of(weights, 1, range(2)))
    assert at(page, "queries-1").get_attribute("aria-selected") == "true"
    name = inspected[0].name(inspected[0].source[int(expected.argmax())])
    assert f"is predicted from “\u2068{name}\u2069” {100 * expected.max():.1f} %" in (
        at(page, "status").text
    )
    # A second click clears the selection: only the strongest lines remain.
    at(page, "queries-1").click()
    assert all(head == "mean" for head, _ in drawn_lines(page))
    assert (
        page.find_elements(By.CSS_SELECTOR, "[role=option][aria-selected=true]") == []
    )


def test_hover_shows_lines_temporarily(page, inspected):
    actions = webdriver.ActionChains(page)
    actions.move_to_element(at(page, "queries-2")).perform()
    assert_lines(page, lines_of(inspected[0].attention.cross[-1], 2, range(2)))
    actions.move_to_element(at(page, "text")).perform()
    assert all(head == "mean" for head, _ in drawn_lines(page))


def test_keyboard_reaches_every_word(page, inspected):
    cross = inspected[0].attention.cross[-1].mean(axis=0)
    focused = page.switch_to.active_element
    for _ in range(20):
        focused.send_keys(Keys.TAB)
        focused = page.switch_to.active_element
        if focused.get_attribute("id") == "queries-0":
            break
    # Focus selects the word.
    assert focused.get_attribute("aria-selected") == "true"
    focused.send_keys(Keys.ARROW_DOWN)
    focused = page.switch_to.active_element
    assert focused.get_attribute("id") == "queries-1"
    focused.send_keys(Keys.ARROW_RIGHT)
    focused = page.switch_to.active_element
    assert focused.get_attribute("id") == f"keys-{cross[1].argmax()}"
    focused.send_keys(Keys.END)
    focused = page.switch_to.active_element
    assert focused.get_attribute("id") == f"keys-{len(inspected[0].source) - 1}"
    np.testing.assert_allclose(
        percentages_of(page, "queries"),
        np.where(cross[:, -1] < 0.005, 0, cross[:, -1]),
        atol=6e-4,
    )
    focused.send_keys(Keys.ESCAPE)
    assert (
        page.find_elements(By.CSS_SELECTOR, "[role=option][aria-selected=true]") == []
    )
    layer = page.find_element(By.CSS_SELECTOR, "#layers input:checked")
    layer.send_keys(Keys.ARROW_LEFT)
    assert "layer 1" in at(page, "status").text


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_every_attention_layer_and_head_can_be_selected(page, inspected, kind):
    inspection = inspected[0]
    weights = getattr(inspection.attention, kind)
    choose(page, "kinds", kind)
    for layer in range(2):
        choose(page, "layers", layer)
        at(page, f"head-{layer}").click()
        query = at(page, "queries-2")
        if query.get_attribute("aria-selected") == "false":
            query.click()
        assert_lines(page, lines_of(weights[layer], 2, [layer]))
        pressed = page.find_elements(By.CSS_SELECTOR, "#overview [aria-pressed=true]")
        assert [button.get_attribute("id") for button in pressed] == [f"head-{layer}"]
    names = [item.get_attribute("title") for item in words(page, "keys")]
    if kind == "encoder":
        assert names == [inspection.name(token) for token in inspection.source]
    else:
        # The input of the decoder is the target shifted by one token.
        assert names == ["(start)", *map(inspection.name, inspection.target[:-1])]
    at(page, "all-heads").click()
    assert_lines(page, lines_of(weights[1], 2, range(2)))


def words(page, side):
    return page.find_elements(By.CSS_SELECTOR, f"#{side} [role=option]")


def test_heads_are_drawn_as_matrices(page, inspected):
    weights = inspected[0].attention.cross[-1]
    for head in range(2):
        size, alpha = page.execute_script(
            "const canvas = document.querySelector(arguments[0]);"
            "const {width, height} = canvas;"
            "const image = canvas.getContext('2d').getImageData(0, 0, width, height);"
            "return [[height, width], [...image.data].filter((_, n) => n % 4 === 3)]",
            f"#head-{head} canvas",
        )
        assert tuple(size) == weights[head].shape
        np.testing.assert_allclose(
            np.reshape(alpha, size) / 255, weights[head], atol=0.003
        )


def test_tables_contain_the_same_numbers(page, inspected):
    inspection = inspected[0]
    weights = inspection.attention.cross[-1]
    open_table(page, "#table")
    all_rows = table(page, "#table")
    assert len(all_rows) == len(inspection.target)
    np.testing.assert_allclose(
        [[float(cell) for cell in row[1:]] for row in all_rows],
        weights.mean(axis=0),
        atol=6e-4,
    )
    at(page, "queries-0").click()
    columns = [weights.mean(axis=0)[0], weights[0, 0], weights[1, 0]]
    np.testing.assert_allclose(
        [[float(cell) for cell in row[1:]] for row in table(page, "#table")],
        np.stack(columns, axis=1),
        atol=6e-4,
    )
    open_table(page, "#beam-table")
    rows = table(page, "#beam-table")
    steps = inspection.beam.steps
    hypotheses = [each for step in steps for each in (*step.alive, *step.ended)]
    for row, each in zip(rows, hypotheses, strict=True):
        step, _, log_prob, score, _ = row
        assert int(step) == len(each.ids)
        numbers = [float(text.replace(MINUS, "-")) for text in (log_prob, score)]
        assert numbers == pytest.approx([each.log_prob, each.score], abs=6e-4)
    assert [row[4] for row in rows].count("the result") == 1


def open_table(page, details):
    """Opens a table and waits until the page has filled it."""
    page.find_element(By.CSS_SELECTOR, f"{details} summary").click()
    WebDriverWait(page, 20).until(lambda page: table(page, details))


def table(page, inside):
    """Returns the texts of the cells in a table's body."""
    return page.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((row) => "
        "[...row.cells].map((cell) => cell.textContent))",
        f"{inside} tbody tr",
    )


def test_beam_tree_can_be_navigated(page, inspected):
    beam = inspected[0].beam
    count = sum(len(step.alive) + len(step.ended) for step in beam.steps)
    assert len(page.find_elements(By.CSS_SELECTOR, "[role=treeitem]")) == count + 1
    edges = page.find_elements(By.CSS_SELECTOR, "#beam .edge")
    assert len(edges) == count
    at(page, "beam-node-0").click()
    assert "one empty hypothesis" in at(page, "beam-status").text
    item = at(page, "beam-node-0")
    for _ in beam.results[0].ids:
        item.send_keys(Keys.ARROW_RIGHT)
        item = page.switch_to.active_element
        assert "best" in item.get_attribute("class")
    status = at(page, "beam-status").text
    score = f"{beam.results[0].score:.3f}".replace("-", MINUS)
    assert f"score {score}" in status
    assert "It is the result." in status
    assert f"score {score}" in at(page, "beam-summary").text
    item.send_keys(Keys.HOME)
    page.switch_to.active_element.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    second = beam.steps[0].alive[1]
    number = f"{second.log_prob:.3f}".replace("-", MINUS)
    label = page.switch_to.active_element.get_attribute("aria-label")
    assert f" {number} " in label.split(":")[0]
    page.switch_to.active_element.send_keys(Keys.END)
    assert "It is the result." in at(page, "beam-status").text


def test_right_to_left_words_have_their_direction(page):
    """The mark of a word's beginning is right of the word's last letter."""
    marks = page.execute_script(
        "const word = '\u2581\u05e9\u05dc\u05d5\u05dd.';"
        "KINDS.cross.queries[0] = BEAM.nodes[1].name = word;"
        "makeColumns(); makeBeam();"
        "const name = document.querySelector('#queries-0 .name');"
        "const range = document.createRange();"
        "const text = name.lastChild;"
        "range.setStart(text, text.length - 1); range.setEnd(text, text.length);"
        "const node = document.querySelector('#beam-node-1 text');"
        "const mark = node.textContent.indexOf(word);"
        "const left = (at) => node.getExtentOfChar(at).x;"
        "return [[name.firstChild.getBoundingClientRect().left,"
        "  range.getBoundingClientRect().left],"
        " [left(mark), left(mark + word.length - 1)]]"
    )
    for mark, last in marks:
        assert mark > last
