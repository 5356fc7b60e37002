"""The page is complete in itself, and its texts stay texts."""

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
    """Every element of a page with its attributes and its text."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.open = False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append([tag, dict(attrs), ""])
        self.open = True

    def handle_endtag(self, tag):
        self.open = False

    def handle_data(self, data):
        if self.open:
            self.found[-1][2] += data

    def texts(self, tag):
        return [text for name, _, text in self.found if name == tag]

    def with_id(self, name):
        (text,) = [text for _, attrs, text in self.found if attrs.get("id") == name]
        return text


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return tiny.tokenizer(tmp_path_factory.mktemp("vocabulary"))


@pytest.fixture(scope="module")
def model():
    return tiny.random_model(num_layers=2, num_decoder_layers=1)


@pytest.fixture(scope="module")
def seen(model, tokenizer):
    return inspect_translation(
        model, tokenizer, HOSTILE, HOSTILE, DecodingConfig(3, extra_length=4)
    )


@pytest.fixture(scope="module")
def page(seen, tokenizer):
    return Elements(attention_page(seen, tokenizer, "<i>model</i>"))


def test_hostile_texts_stay_texts(page):
    assert page.with_id("text") == HOSTILE
    assert page.with_id("translation") == HOSTILE
    assert [name for name, _, _ in page.found if name in {"b", "i", "img"}] == []
    # The data, and the page's own.
    assert len(page.texts("script")) == 2
    assert page.texts("title") == [f"Attention of <i>model</i>: {HOSTILE}"]


def test_nothing_is_fetched_and_only_its_own_script_runs(page):
    for _, attributes, _ in page.found:
        for name in ("src", "href", "srcset", "action", "data"):
            assert attributes.get(name, "#").startswith(("#", "data:,"))
    _, script = page.texts("script")
    (style,) = page.texts("style")
    for text in (script, style):
        assert "url(" not in text
        assert "@import" not in text
        assert set(re.findall(r"https?://[^\"]*", text)) <= {
            "http://www.w3.org/2000/svg"  # A name; nothing is fetched from it.
        }
    (policy,) = [
        attributes["content"]
        for name, attributes, _ in page.found
        if name == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert "default-src 'none'" in policy
    for kind, text in (("script", script), ("style", style)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_the_data_hold_all_weights_and_the_whole_search(page, seen, tokenizer):
    data = json.loads(page.with_id("data"))
    assert data == page_data(seen, tokenizer)
    assert len(data["source"]) == len(seen.source)
    assert data["target"][-1] == seen.name(1)
    for kind, weights in seen.attention._asdict().items():
        packed = data["maps"][kind]
        assert (packed["layers"], packed["heads"]) == weights.shape[:2]
        values = np.frombuffer(base64.b64decode(packed["weights"]), "<u2") / 65535
        np.testing.assert_allclose(values.reshape(weights.shape), weights, atol=8e-6)
    nodes = data["beam"]["nodes"]
    kept = [each for step in seen.beam.steps for each in (*step.alive, *step.ended)]
    assert len(nodes) == 1 + len(kept)
    for at, (node, each) in enumerate(zip(nodes[1:], kept, strict=True), 1):
        assert node["parent"] < at
        assert node["step"] == len(each.ids) == nodes[node["parent"]]["step"] + 1
        assert node["logProb"] == pytest.approx(each.log_prob, abs=1e-6)
        assert node["name"] == seen.name(each.ids[-1])
    (winner,) = [node for node in nodes if node["result"] == 0]
    assert winner["text"] == seen.found
    on_the_way = [node for node in nodes if node["best"]]
    assert len(on_the_way) == winner["step"] + 1
    assert on_the_way[-1] == winner


def test_what_was_cut_is_told(model, tokenizer):
    text = "one " * 200
    cut = inspect_translation(
        model, tokenizer, text, "eins", DecodingConfig(1, extra_length=1)
    )
    page = attention_page(cut, tokenizer, "model")
    assert f"<p>{cut.cuts[0]}.</p>" in page


@pytest.mark.parametrize("room", ["analysis", "live_page"])
def test_the_parts_of_the_page_are_packaged(room):
    root = Path(__file__).resolve().parents[2]
    settings = configparser.ConfigParser()
    settings.read(root / "setup.cfg", encoding="utf-8")
    patterns = settings["options.package_data"][f"t2t_repro.{room}"].split(", ")
    folder = root / "t2t_repro" / room
    names = {path for pattern in patterns for path in folder.glob(pattern)}
    parts = {path for path in folder.rglob("*.*") if path.suffix not in (".py", ".pyc")}
    assert names == parts
    assert {"page.html", "style.css", "elements.js"} <= {path.name for path in names}
