"""Tests of the live page's model against the model in Python."""

from urllib.parse import quote, urlencode

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("selenium.webdriver", reason="selenium is absent")

from selenium.webdriver.support.ui import WebDriverWait

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.live_page import model_data
from t2t_repro.models.attention_maps import attention_maps
from t2t_repro.translation.translator import MAX_INPUT_LENGTH, Translator
from tests import tiny
from tests.in_browser import at
from tests.live_page.live_model import Live, call, rows

pytestmark = pytest.mark.medium

ODD = [
    *("", " ", " one  two ", "</s>", "<pad>", "\u2581", "\ue000", "\\_u;", "e\u0301"),
    *("שלום", "\U0001f468\u200d\U0001f469", "日本", "\0one", "ﬁ\u3000①"),
    "one two " * 15,
]
TEXTS = [source for source, _ in tiny.pairs("train")[:20]] + ODD


def test_translations_tokens_and_scores_equal_those_of_python(live):
    assert [call(live.page, "read", text)["ids"] for text in TEXTS] == [
        live.ids(text) for text in TEXTS
    ]
    expected = live.translations(TEXTS)
    assert len({each.text for each in expected}) > 10
    live.assert_translations(TEXTS, expected)


def test_page_has_a_javascript_api(live):
    answer = live.page.execute_async_script(
        "transformer.translate('one two').then(arguments[0])"
    )
    (expected,) = live.translations(["one two"])
    assert answer["translation"] == expected.text
    assert answer["score"] == pytest.approx(expected.score, rel=2e-5)
    assert answer["tokens"] == expected.best.tokens == len(answer["pieces"])
    assert answer["unread"] == 0
    long = "one two " * 300
    subwords = len(live.tokenizer.encode(tf.constant([long]))[0])
    found = call(live.page, "translate", long, {"beamSize": 1, "prefix": [1]})
    assert found["unread"] == subwords - MAX_INPUT_LENGTH > 0


def test_page_reports_what_it_does_not_read(live):
    reference = "one two " * 300
    subwords = len(live.ids(reference))
    live.page.get("about:blank")
    address = f"{live.address}#view=whatif&text=One.%20Two.&reference={reference}"
    live.page.get(address.replace("one two ", "one%20two%20"))
    WebDriverWait(live.page, 60).until(lambda page: at(page, "reference"))
    (note,) = live.page.find_elements("css selector", "#reference + p")
    unread = subwords - MAX_INPUT_LENGTH
    assert note.text == (
        f"The reference is too long: its last {unread} subwords were not read."
    )
    assert "reads the text as one sentence" in at(live.page, "summary").text


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (
            "wordpiece",
            {"num_layers": 1, "norm": "pre", "position": "learned", "max_position": 9},
        ),
        (
            "sentencepiece",
            {
                "share_embeddings": False,
                "d_k": 5,
                "d_v": 3,
                "num_decoder_layers": 1,
                "position": "sinusoid_paper",
            },
        ),
        (
            "sentencepiece",
            {
                "num_layers": 1,
                "scale_embeddings": False,
                "position": "none",
                "target_space_embedding": False,
                "vocab_divisor": 7,
            },
        ),
        (
            "sentencepiece",
            {
                "activation": "gelu_sigmoid",
                "attention_bias": True,
                "softmax_bias": True,
                "decoder_d_ff": 24,
                "norm": "pre",
                "norm_epsilon": 0.1,
                "share_embeddings": False,
                "start_symbol": 3,
                "source_end": False,
            },
        ),
        (
            "sentencepiece",
            {"search": "marian", "word_penalty": -0.4, "decode_length_factor": 1.3},
        ),
    ],
)
def test_translations_with_other_options(browser, tmp_path, kind, settings):
    live = Live(browser, tmp_path, kind, **settings)
    texts = TEXTS[12:-1]
    live.assert_translations(texts, live.translations(texts))


def test_weights_of_larger_models_have_24_bits(browser, tmp_path, monkeypatch):
    monkeypatch.setattr(model_data, "MOST_EXACT_PARAMETERS", 0)
    live = Live(browser, tmp_path)
    assert "stored with 24 bits" in browser.find_element("tag name", "footer").text
    texts = TEXTS[:5]
    live.assert_translations(texts, live.translations(texts))


@pytest.mark.parametrize(
    "search", [DecodingConfig(1, extra_length=6), DecodingConfig(5, 1.5, 6)]
)
def test_beam_size_and_alpha_can_be_changed(live, search):
    options = {"beamSize": search.beam_size, "alpha": search.alpha}
    texts = TEXTS[:8]
    expected = live.translations(texts, Translator(live.model, live.tokenizer, search))
    for text, each in zip(texts, expected, strict=True):
        result = call(live.page, "translate", text, options)
        assert result["translation"] == each.text
        assert result["score"] == pytest.approx(each.score, rel=2e-5)


def test_translations_begin_with_the_prefix(live):
    prefix = live.ids("drei vier")[:-1]
    (each,) = live.translator.translate_window(["one two"], prefixes=["drei vier"])
    result = call(live.page, "translate", "one two", {"prefix": prefix})
    assert result["translation"] == each.text
    assert result["score"] == pytest.approx(each.score, rel=2e-5)


def test_attention_and_logits_equal_those_of_python(live):
    source, target = live.ids("one two three"), live.ids("eins zwei")
    tensors = call(live.page, "inspect", source, target)
    inputs = {"inputs": tf.constant([source]), "targets": tf.constant([target])}
    np.testing.assert_allclose(
        rows(tensors["logits"]), live.model(inputs)[0], atol=1e-4
    )
    maps = attention_maps(live.model, inputs["inputs"], inputs["targets"])
    assert len(maps) == 6
    for name, weights in maps.items():
        steps = tensors[f"{name}/steps"]
        heads = [rows([row["weights"] for row in head]) for head in steps]
        np.testing.assert_allclose(heads, weights[0], atol=1e-4)


def show(live, **settings):
    """Opens the page with settings and returns the text of the view."""
    live.page.get("about:blank")
    settings = {"view": "translate"} | settings
    live.page.get(f"{live.address}#{urlencode(settings, quote_via=quote)}")
    WebDriverWait(live.page, 60).until(
        lambda page: page.find_elements("css selector", "#view h2")
    )
    return at(live.page, "view").text


def formulas(page):
    """Returns the formulas of the view as text."""
    return [
        each.get_attribute("alttext")
        for each in page.find_elements("css selector", "#view .formula math")
    ]


def test_page_says_what_it_shows(browser, shared_live, tmp_path):
    assert "A bar marks the beginning" in show(shared_live, text="one")
    assert " future tokens" not in show(shared_live, view="attention")
    assert "No key is masked" in show(shared_live, view="attention")
    assert " future tokens" in show(shared_live, view="attention", kind="decoder/self")
    show(shared_live, view="architecture", block="decoder/logits")
    assert formulas(browser) == ["logits = x E^T"]
    show(shared_live, text=" ")
    assert at(browser, "translation").text == "Type a sentence."
    pieces = Live(browser, tmp_path, "wordpiece", norm="pre", source_end=False)
    assert "added for the end of the source" in show(pieces, view="attention")
    assert "An underscore marks the end" in show(pieces, text="one")
    show(pieces, view="architecture", block="encoder/self_residual")
    assert formulas(browser) == ["x + Sublayer(LayerNorm(x))"]


def test_only_shares_of_zero_are_shown_as_zero(live):
    shares = [0, 1e-9, 4e-5, 5e-4, 0.0123, 0.5, 1]
    texts = live.page.execute_script("return arguments[0].map(percent)", shares)
    assert " ".join(texts) == "0.0 % < 0.01 % < 0.01 % 0.05 % 1.2 % 50.0 % 100.0 %"


def test_right_to_left_text_has_its_direction(browser, tmp_path):
    live = Live(browser, tmp_path, lines=["שלום."] * 40)
    show(live, text="שלום.")
    directions = browser.execute_script(
        "const words = document.querySelector('.pieces li');"
        "const [table] = document.querySelectorAll('#view table');"
        "table.rows[1].lastChild.textContent = words.textContent;"
        "return [words, table.rows[1].lastChild].map((each) => {"
        "  const text = each.firstChild;"
        "  return [0, text.length - 1].map((at) => {"
        "    const range = document.createRange();"
        "    range.setStart(text, at);"
        "    range.setEnd(text, at + 1);"
        "    return range.getBoundingClientRect().left;"
        "  });"
        "})"
    )
    # The mark of a word's beginning is right of the word's last letter.
    for mark, last in directions:
        assert mark > last
