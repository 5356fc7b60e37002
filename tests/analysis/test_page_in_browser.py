"""The page in a real browser: what is chosen is shown, by mouse and by keyboard."""

import json
import re
import shutil

import numpy as np
import pytest

from t2t_repro.analysis.looking import look
from t2t_repro.analysis.page import attention_page
from t2t_repro.decoding.search import Search
from tests import tiny

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is absent")
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

pytestmark = pytest.mark.medium

MINUS = "\N{MINUS SIGN}"
HOSTILE = "<img src=x onerror=alert(1)>"
TEXT = f"one two </script><b>three</b> {HOSTILE}"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu"),
    *("--disable-dev-shm-usage", "--window-size=1200,1000"),
)


@pytest.fixture(scope="module")
def browser():
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if not program or not driver:
        pytest.skip("no chromium with its chromedriver on this machine")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.set_capability(
        "goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"}
    )
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    yield chrome
    chrome.quit()


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    tokenizer = tiny.tokenizer(tmp_path_factory.mktemp("vocabulary"))
    model = tiny.random_model(num_layers=2)
    return look(model, tokenizer, TEXT, None, Search(3, extra_length=4)), tokenizer


@pytest.fixture(scope="module")
def address(seen, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "attention.html"
    path.write_text(attention_page(*seen, "model"), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def page(browser, address):
    """The page as it is opened: the last layer of the cross-attention, all heads."""
    scheme(browser, "light")
    browser.set_window_size(1200, 1000)
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get(address)
    yield browser
    assert [entry["message"] for entry in browser.get_log("browser")] == []
    messages = [
        json.loads(entry["message"])["message"]
        for entry in browser.get_log("performance")
    ]
    asked = {
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    }
    assert asked == {address}


def scheme(browser, value):
    features = [{"name": "prefers-color-scheme", "value": value}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def at(page, name):
    return page.find_element(By.ID, name)


def choose(page, group, value):
    """Chooses a radio button or a checkbox, as a click on its label does."""
    field = page.find_element(By.CSS_SELECTOR, f"#{group} input[value='{value}']")
    page.execute_script("arguments[0].click()", field)


def shares(page, side):
    """Returns the percentages beside the words of a column; no number is 0."""
    texts = [
        item.text for item in page.find_elements(By.CSS_SELECTOR, f"#{side} .percent")
    ]
    return [float(text.removesuffix(" %")) / 100 if text else 0.0 for text in texts]


def drawn(page):
    """Returns the lines: head and pair of words to weight."""
    found = page.execute_script(
        "return [...document.querySelectorAll('#lines path')].map((path) => "
        "[path.dataset.head, path.dataset.pair, Number(path.dataset.weight)])"
    )
    return {(head, pair): weight for head, pair, weight in found}


def lines_of(weights, query, heads, least=0.02):
    """The lines that a word's weights (heads, queries, keys) make."""
    return {
        (str(head), f"{query}-{key}"): weight
        for head in heads
        for key, weight in enumerate(weights[head, query])
        if weight >= least
    }


def assert_lines(page, expected):
    found = drawn(page)
    assert found.keys() == expected.keys()
    assert found == pytest.approx(expected, abs=3e-5)


def test_a_click_shows_where_a_word_looks(page, seen):
    weights = seen[0].attention.cross[-1]
    at(page, "queries-1").click()
    found = shares(page, "keys")
    expected = weights.mean(axis=0)[1]
    np.testing.assert_allclose(
        found, np.where(expected < 0.005, 0, expected), atol=6e-4
    )
    assert max(found) > 0.05
    assert shares(page, "queries") == [0] * len(seen[0].target)
    assert_lines(page, lines_of(weights, 1, range(2)))
    assert at(page, "queries-1").get_attribute("aria-selected") == "true"
    name = seen[0].name(seen[0].source[int(expected.argmax())])
    assert f"is predicted from “{name}” {100 * expected.max():.1f} %" in (
        at(page, "status").text
    )
    # A second click lets go: only the strong lines of all words are left.
    at(page, "queries-1").click()
    assert all(head == "mean" for head, _ in drawn(page))
    assert (
        page.find_elements(By.CSS_SELECTOR, "[role=option][aria-selected=true]") == []
    )


def test_a_word_that_is_looked_at_shows_by_whom(page, seen):
    at(page, "keys-2").click()
    expected = seen[0].attention.cross[-1].mean(axis=0)[:, 2]
    np.testing.assert_allclose(
        shares(page, "queries"), np.where(expected < 0.005, 0, expected), atol=6e-4
    )
    assert "is looked at by" in at(page, "status").text


def test_pointing_shows_and_leaving_forgets(page, seen):
    actions = webdriver.ActionChains(page)
    actions.move_to_element(at(page, "queries-2")).perform()
    assert_lines(page, lines_of(seen[0].attention.cross[-1], 2, range(2)))
    actions.move_to_element(at(page, "text")).perform()
    assert all(head == "mean" for head, _ in drawn(page))


def test_the_keyboard_alone_reaches_every_word(page, seen):
    cross = seen[0].attention.cross[-1].mean(axis=0)
    focused = page.switch_to.active_element
    for _ in range(20):
        focused.send_keys(Keys.TAB)
        focused = page.switch_to.active_element
        if focused.get_attribute("id") == "queries-0":
            break
    # To arrive is to choose.
    assert focused.get_attribute("aria-selected") == "true"
    focused.send_keys(Keys.ARROW_DOWN)
    focused = page.switch_to.active_element
    assert focused.get_attribute("id") == "queries-1"
    focused.send_keys(Keys.ARROW_RIGHT)
    focused = page.switch_to.active_element
    assert focused.get_attribute("id") == f"keys-{cross[1].argmax()}"
    focused.send_keys(Keys.END)
    focused = page.switch_to.active_element
    assert focused.get_attribute("id") == f"keys-{len(seen[0].source) - 1}"
    np.testing.assert_allclose(
        shares(page, "queries"),
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
def test_every_attention_layer_and_head_can_be_seen(page, seen, kind):
    look_ = seen[0]
    weights = getattr(look_.attention, kind)
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
        assert names == [look_.name(symbol) for symbol in look_.source]
    else:
        # It reads the symbol before; in the beginning there is none.
        assert names == ["(start)", *map(look_.name, look_.target[:-1])]
    at(page, "all-heads").click()
    assert_lines(page, lines_of(weights[1], 2, range(2)))


def words(page, side):
    return page.find_elements(By.CSS_SELECTOR, f"#{side} [role=option]")


def test_heads_are_drawn_as_matrices(page, seen):
    weights = seen[0].attention.cross[-1]
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


def test_the_tables_hold_the_same_numbers(page, seen):
    look_ = seen[0]
    weights = look_.attention.cross[-1]
    unfold(page, "#table")
    whole = table(page, "#table")
    assert len(whole) == len(look_.target)
    np.testing.assert_allclose(
        [[float(cell) for cell in row[1:]] for row in whole],
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
    unfold(page, "#beam-table")
    rows = table(page, "#beam-table")
    kept = [each for step in look_.beam.steps for each in (*step.alive, *step.ended)]
    for row, each in zip(rows, kept, strict=True):
        step, _, log_prob, score, _ = row
        assert int(step) == len(each.ids)
        numbers = [float(text.replace(MINUS, "-")) for text in (log_prob, score)]
        assert numbers == pytest.approx([each.log_prob, each.score], abs=6e-4)
    assert [row[4] for row in rows].count("the result") == 1


def unfold(page, details):
    """Opens a table, and waits until the page, which is told of it later, fills it."""
    page.find_element(By.CSS_SELECTOR, f"{details} summary").click()
    WebDriverWait(page, 20).until(lambda page: table(page, details))


def table(page, inside):
    """Returns the cells of a table's body."""
    return page.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((row) => "
        "[...row.cells].map((cell) => cell.textContent))",
        f"{inside} tbody tr",
    )


def test_the_beam_is_a_tree_to_walk_through(page, seen):
    beam = seen[0].beam
    kept = sum(len(step.alive) + len(step.ended) for step in beam.steps)
    assert len(page.find_elements(By.CSS_SELECTOR, "[role=treeitem]")) == kept + 1
    edges = page.find_elements(By.CSS_SELECTOR, "#beam .edge")
    assert len(edges) == kept
    at(page, "node-0").click()
    assert "one empty hypothesis" in at(page, "beam-status").text
    item = at(page, "node-0")
    for _ in beam.results[0].ids:
        item.send_keys(Keys.ARROW_RIGHT)
        item = page.switch_to.active_element
        assert "best" in item.get_attribute("class")
    told = at(page, "beam-status").text
    score = f"{beam.results[0].score:.3f}".replace("-", MINUS)
    assert f"score {score}" in told
    assert "It is the result." in told
    assert f"score {score}" in at(page, "beam-summary").text
    item.send_keys(Keys.HOME)
    page.switch_to.active_element.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    second = beam.steps[0].alive[1]
    number = f"{second.log_prob:.3f}".replace("-", MINUS)
    assert f"log probability {number}" in (
        page.switch_to.active_element.get_attribute("aria-label")
    )
    page.switch_to.active_element.send_keys(Keys.END)
    assert "It is the result." in at(page, "beam-status").text


def test_hostile_text_is_shown_as_text(page):
    assert at(page, "text").text == TEXT
    assert page.find_elements(By.CSS_SELECTOR, "body b, body img") == []
    assert page.title.endswith(TEXT)
    assert len(page.find_elements(By.TAG_NAME, "script")) == 2


def test_whatever_takes_part_has_a_role_and_a_name(page):
    nodes = page.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    found = {}
    for node in nodes:
        if not node["ignored"]:
            name = node.get("name", {}).get("value", "").strip()
            found.setdefault(node["role"]["value"], []).append(name)
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
        assert len(found[role]) >= least, role
        assert role == "main" or all(found[role]), role
    assert len(found["status"]) == 2


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

    ground = luminance(colour("body", "background-color"))
    assert (ground > 0.5) == (wished == "light")
    for selector, least in {
        "body": 7,
        ".quiet": 4.5,
        "#status": 4.5,
        "#kinds .choice span": 4.5,
    }.items():
        behind = colour(selector, "background-color")
        text = page.execute_script(
            "return getComputedStyle(document.querySelector(arguments[0]))"
            ".backgroundColor",
            selector,
        )
        around = ground if text == "rgba(0, 0, 0, 0)" else luminance(behind)
        assert contrast(luminance(colour(selector, "color")), around) >= least


def luminance(colour):
    """Relative luminance of sRGB 0 to 255 (WCAG 2.2)."""
    share = colour / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    """Contrast ratio of two luminances (WCAG 2.2)."""
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)


def test_a_narrow_window_needs_no_sideways_scrolling(page):
    page.set_window_size(500, 900)
    wide, inner = page.execute_script(
        "return [document.documentElement.scrollWidth, innerWidth]"
    )
    assert wide <= inner
    left, right = at(page, "queries-0").rect, at(page, "keys-0").rect
    assert left["x"] + left["width"] <= right["x"]
