"""Tests of the attention page's data, escaping and security policy."""

import base64
import configparser
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from t2t_repro.analysis.inspect_translation import inspect_translation
from t2t_repro.analysis.page import attention_page, page_data
from t2t_repro.decoding.config import DecodingConfig
from tests import tiny

HOSTILE = '</script><script>alert(1)</script><b>&amp; "two" \' $title </dd>'


class Elements(HTMLParser):
    """Parser that collects the elements of a page: tag, attributes and text."""

    def __init__(self, page):
        super().__init__()
        self.elements = []
        self.open = False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append([tag, dict(attrs), ""])
        self.open = True

    def handle_endtag(self, tag):
        self.open = False

    def handle_data(self, data):
        if self.open:
            self.elements[-1][2] += data

    def texts(self, tag):
        return [text for name, _, text in self.elements if name == tag]

    def with_id(self, name):
        (text,) = [text for _, attrs, text in self.elements if attrs.get("id") == name]
        return text


@pytest.fixture(scope="module")
def model():
    return tiny.random_model(num_layers=2, num_decoder_layers=1)


@pytest.fixture(scope="module")
def inspection(model, tokenizer):
    search = DecodingConfig(3, extra_length=9, length_factor=0.0)
    return inspect_translation(model, tokenizer, HOSTILE, HOSTILE, search)


@pytest.fixture(scope="module")
def page(inspection, tokenizer):
    return Elements(attention_page(inspection, tokenizer, "<i>model</i>"))


def test_hostile_texts_are_escaped(page):
    assert page.with_id("text") == HOSTILE
    assert page.with_id("translation") == HOSTILE
    assert [name for name, _, _ in page.elements if name in {"b", "i", "img"}] == []
    # The only scripts are the page's data and its own code.
    assert len(page.texts("script")) == 2
    assert page.texts("title") == [f"Attention of <i>model</i>: {HOSTILE}"]


def test_page_fetches_nothing_and_allows_only_its_own_script(page):
    for _, attributes, _ in page.elements:
        for name in ("src", "href", "srcset", "action", "data"):
            assert attributes.get(name, "#").startswith(("#", "data:,"))
    _, script = page.texts("script")
    (style,) = page.texts("style")
    for text in (script, style):
        assert "url(" not in text
        assert "@import" not in text
        assert set(re.findall(r"https?://[^\"]*", text)) <= {
            "http://www.w3.org/2000/svg"  # XML namespace, never fetched.
        }
    (policy,) = [
        attributes["content"]
        for name, attributes, _ in page.elements
        if name == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert "default-src 'none'" in policy
    for kind, text in (("script", script), ("style", style)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_data_contain_all_weights_and_the_whole_search(page, inspection, tokenizer):
    data = json.loads(page.with_id("data"))
    assert data == page_data(inspection, tokenizer)
    assert len(data["source"]) == len(inspection.source)
    assert data["target"][-1] == inspection.name(1)
    for kind, weights in inspection.attention._asdict().items():
        packed = data["maps"][kind]
        assert (packed["layers"], packed["heads"]) == weights.shape[:2]
        values = np.frombuffer(base64.b64decode(packed["weights"]), "<u2") / 65535
        np.testing.assert_allclose(values.reshape(weights.shape), weights, atol=8e-6)
    nodes = data["beam"]["nodes"]
    steps = inspection.beam.steps
    hypotheses = [each for step in steps for each in (*step.alive, *step.ended)]
    assert len(nodes) == 1 + len(hypotheses)
    for number, (node, each) in enumerate(zip(nodes[1:], hypotheses, strict=True), 1):
        assert node["parent"] < number
        assert node["step"] == len(each.ids) == nodes[node["parent"]]["step"] + 1
        assert node["logProb"] == pytest.approx(each.log_prob, abs=1e-6)
        assert node["name"] == inspection.name(each.ids[-1])
    (winner,) = [node for node in nodes if node["result"] == 0]
    assert winner["text"] == inspection.found
    best_path = [node for node in nodes if node["best"]]
    assert len(best_path) == winner["step"] + 1
    assert best_path[-1] == winner


def test_message_about_cut_text_is_shown(model, tokenizer):
    text = "one " * 200
    search = DecodingConfig(1, extra_length=1, length_factor=0.0)
    cut = inspect_translation(model, tokenizer, text, "eins", search)
    page = attention_page(cut, tokenizer, "model")
    assert f"<p>{cut.cuts[0]}.</p>" in page


@pytest.mark.parametrize("room", ["analysis", "live_page"])
def test_files_of_the_page_are_packaged(room):
    root = Path(__file__).resolve().parents[2]
    settings = configparser.ConfigParser()
    settings.read(root / "setup.cfg", encoding="utf-8")
    patterns = settings["options.package_data"][f"t2t_repro.{room}"].split(", ")
    folder = root / "t2t_repro" / room
    found = (path for pattern in patterns for path in folder.glob(pattern))
    names = {path for path in found if path.is_file()}
    parts = {path for path in folder.rglob("*.*") if path.suffix not in (".py", ".pyc")}
    assert names == parts
    assert {"page.html", "style.css", "elements.js"} <= {path.name for path in names}
