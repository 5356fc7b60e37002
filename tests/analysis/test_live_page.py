"""The model in the page computes what the model in Python computes."""

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("selenium.webdriver", reason="selenium is absent")

from t2t_repro.analysis.live_page import live_page
from t2t_repro.decoding.search import Search
from t2t_repro.hparams import HParams
from t2t_repro.models.attention_maps import attention_maps
from t2t_repro.runs.model_dir import build_model
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.vocabulary import build_vocabulary
from t2t_repro.translation.translator import Translator
from tests import tiny

pytestmark = pytest.mark.medium

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 2, "seed": 1}
ODD = [
    *("", " ", " one  two ", "</s>", "<pad>", "\u2581", "\ue000", "\\_u;", "e\u0301"),
    *("שלום", "\U0001f468\u200d\U0001f469", "日本", "\0one", "ﬁ\u3000①"),
    "one two " * 15,
]
TEXTS = [source for source, _ in tiny.pairs("train")[:20]] + ODD
SEARCH = Search(3, extra_length=6)


def ask(page, method, *values):
    """Asks the page's model, and waits for its answer."""
    answer = page.execute_async_script(
        "const [method, values, done] = arguments;"
        "loaded.then(() => ask(method, ...values)).then("
        "(found) => done({found}), (error) => done({error: String(error)}))",
        method,
        values,
    )
    assert "error" not in answer, answer
    return answer["found"]


class Live:
    """A model, rounded as the page holds it, its tokenizer and its open page."""

    def __init__(self, browser, folder, kind="sentencepiece", **settings):
        self.hparams = HParams(
            **(SIZES | settings), beam_size=3, decode_extra_length=6, vocab_size=300
        )
        suffix = {"sentencepiece": "model", "wordpiece": "subwords"}[kind]
        path = folder / f"vocab.{suffix}"
        lines = [line for pair in tiny.pairs("train") for line in pair]
        size = 300 if kind == "sentencepiece" else 60
        build_vocabulary(kind, lines, size, path)
        self.tokenizer = load_tokenizer(path)
        self.model = self.made()
        page = live_page(
            *(self.model, self.hparams, path.read_bytes(), path.name, "model"), "one"
        )
        output = folder / "live.html"
        output.write_text(page, encoding="utf-8")
        self.page, self.address = browser, output.as_uri()
        self.open()

    def open(self):
        self.page.set_script_timeout(300)
        self.page.get("about:blank")
        self.page.get(self.address)

    def made(self, **changes):
        model = build_model(self.hparams.replace(**changes), self.tokenizer.vocab_size)
        generator = np.random.default_rng(1)
        for variable in model.trainable_variables:
            value = variable.numpy() + generator.normal(0, 0.3, variable.shape)
            bits = value.astype(np.float32).view(np.uint32) & 0xFFFFFF00
            variable.assign(bits.view(np.float32))
        return model

    def ids(self, text):
        return self.tokenizer.encode(tf.constant([text])).to_list()[0]

    def translations(self, model=None, search=SEARCH):
        translator = Translator(model or self.model, self.tokenizer, search)
        return list(translator.translate_lines(TEXTS))


@pytest.fixture(scope="module")
def made(browser, tmp_path_factory):
    return Live(browser, tmp_path_factory.mktemp("live"))


@pytest.fixture
def live(made):
    """The page as it is opened, whatever the browser has shown since."""
    made.open()
    return made


# Scores of random weights are tens of nats, and float32 in Python: rtol, not atol.
def assert_translations(page, expected, changes=None):
    found = [ask(page, "translate", text, {"changes": changes}) for text in TEXTS]
    assert [each["translation"] for each in found] == [each.text for each in expected]
    assert [each["tokens"] for each in found] == [each.tokens for each in expected]
    np.testing.assert_allclose(
        [each["score"] for each in found], [each.score for each in expected], rtol=2e-5
    )


def test_translations_subwords_and_scores_are_those_of_translate(live):
    assert [ask(live.page, "encode", text) for text in TEXTS] == [
        live.ids(text) for text in TEXTS
    ]
    expected = live.translations()
    assert len({each.text for each in expected}) > 10
    assert_translations(live.page, expected)


def test_anybody_can_ask_the_page(live):
    answer = live.page.execute_async_script(
        "transformer.translate('one two').then(arguments[0])"
    )
    (expected,) = Translator(live.model, live.tokenizer, SEARCH).translate_lines(
        ["one two"]
    )
    assert answer["translation"] == expected.text
    assert answer["score"] == pytest.approx(expected.score, rel=2e-5)
    assert answer["tokens"] == expected.tokens == len(answer["pieces"])


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("wordpiece", {"norm": "pre", "position": "learned", "max_position": 9}),
        ("sentencepiece", {"share_embeddings": False, "position": "sinusoid_paper"}),
        (
            "sentencepiece",
            {
                "d_k": 5,
                "d_v": 3,
                "num_decoder_layers": 1,
                "position": "sinusoid_halves",
            },
        ),
        (
            "sentencepiece",
            {
                "scale_embeddings": False,
                "position": "none",
                "target_space_embedding": False,
                "vocab_divisor": 7,
            },
        ),
    ],
)
def test_other_options_translate_alike(browser, tmp_path, kind, settings):
    made = Live(browser, tmp_path, kind, **settings)
    assert_translations(made.page, made.translations())


@pytest.mark.parametrize("search", [Search(1, extra_length=6), Search(5, 1.5, 6)])
def test_beam_and_alpha_are_free(live, search):
    options = {"beamSize": search.beam_size, "alpha": search.alpha}
    for text, each in zip(TEXTS, live.translations(search=search), strict=True):
        found = ask(live.page, "translate", text, options)
        assert found["translation"] == each.text
        assert found["score"] == pytest.approx(each.score, rel=2e-5)


def test_a_prefix_is_followed(live):
    translator = Translator(live.model, live.tokenizer, SEARCH)
    prefix = live.ids("drei vier")[:-1]
    (each,) = translator.translate_window(["one two"], prefixes=["drei vier"])
    found = ask(live.page, "translate", "one two", {"prefix": prefix})
    assert found["translation"] == each.text
    assert found["score"] == pytest.approx(each.score, rel=2e-5)


def test_attention_and_logits_are_those_of_the_model(live):
    source, target = live.ids("one two three"), live.ids("eins zwei")
    seen = ask(live.page, "inspect", source, target)
    inputs = {"inputs": tf.constant([source]), "targets": tf.constant([target])}
    np.testing.assert_allclose(rows(seen["logits"]), live.model(inputs)[0], atol=1e-4)
    maps = attention_maps(live.model, inputs["inputs"], inputs["targets"])
    assert len(maps) == 6
    for name, weights in maps.items():
        steps = seen[f"{name}/steps"]
        found = [rows([row["weights"] for row in head]) for head in steps]
        np.testing.assert_allclose(found, weights[0], atol=1e-4)


def rows(found):
    """Reads rows of numbers; a typed array comes as an object of its places."""
    return [
        [row[str(n)] for n in range(len(row))] if isinstance(row, dict) else row
        for row in found
    ]


# Each change, made in Python by the model's own means.


def silent_head(live):
    model = live.made()
    kernel = model.decoder.layer_1.cross_attention.output_projection.kernel
    value = kernel.numpy()
    value[8:] = 0  # The rows of W_O that read the second head.
    kernel.assign(value)
    return model


def unscaled(live):
    model = live.made()
    for stack in (model.encoder, model.decoder):
        for layer in stack.layers_in_order():
            for name in ("self_attention", "cross_attention"):
                if hasattr(layer, name):
                    query = getattr(layer, name).query.kernel
                    query.assign(query * 8**0.5)
    return model


def no_positions(live):
    return live.made(position="none")


def no_residual(live):
    model = live.made()
    residual = model.encoder.layer_0.feed_forward_residual
    residual.call = lambda x, sublayer, training=None: residual.layer_norm(sublayer(x))
    return model


def no_causal_mask(live):
    model = live.made()
    for layer in model.decoder.layers_in_order():
        attention = layer.self_attention
        plain = attention.call
        attention.call = lambda *args, use_causal_mask, plain=plain, **named: plain(
            *args, **named
        )
    return model


@pytest.mark.parametrize(
    ("change", "changes"),
    [
        (silent_head, {"heads": ["decoder/layer_1/cross_attention/1"]}),
        (unscaled, {"unscaled": True}),
        (no_positions, {"noPositions": True}),
        (no_residual, {"residuals": ["encoder/layer_0/feed_forward_residual"]}),
        (no_causal_mask, {"noCausalMask": True}),
    ],
)
def test_what_if_is_the_same_change_made_in_python(live, change, changes):
    model = change(live)
    assert_translations(live.page, live.translations(model), changes)
    differs = 0
    for source, target in tiny.pairs("train")[:10]:
        pair = live.ids(source), live.ids(target)
        found = ask(live.page, "score", *pair, changes)
        logits = model(dict(zip(("inputs", "targets"), map(row, pair), strict=True)))
        log_probs = tf.nn.log_softmax(logits[0]).numpy()
        expected = log_probs[range(len(pair[1])), pair[1]]
        np.testing.assert_allclose([s["logProb"] for s in found], expected, atol=1e-4)
        whole = ask(live.page, "score", *pair)
        differs += abs(sum(s["logProb"] for s in whole) - expected.sum()) > 1e-3
    assert differs


def row(ids):
    return tf.constant([ids])
