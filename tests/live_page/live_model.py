"""Live page of a random model in a browser."""

import io

import numpy as np
import sentencepiece
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.hparams import HParams
from t2t_repro.live_page import model_data
from t2t_repro.live_page.page import live_page
from t2t_repro.runs.model_dir import build_model
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.marian_tokenizer import SPECIAL_PIECES, MarianTokenizer
from t2t_repro.tokenizers.separate_tokenizer import join_vocabularies
from t2t_repro.tokenizers.vocabulary import build_vocabulary
from t2t_repro.translation.options import TranslationOptions
from t2t_repro.translation.translator import Translator
from tests import tiny

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 2, "seed": 1}
SEARCH = DecodingConfig(3, extra_length=6)
SUFFIXES = {
    "sentencepiece": "model",
    "wordpiece": "subwords",
    "marian": "marian",
    "sides": "sides",
}


def call(page, method, *values):
    """Calls a method of the page's model and returns the result."""
    answer = page.execute_async_script(
        "const [method, values, done] = arguments;"
        "loaded.then(() => ask(method, ...values)).then("
        "(result) => done({result}), (error) => done({error: String(error)}))",
        method,
        values,
    )
    assert "error" not in answer, answer
    return answer["result"]


def rows(values):
    """Returns rows of numbers; Selenium returns typed arrays as objects."""
    return [
        [row[str(n)] for n in range(len(row))] if isinstance(row, dict) else row
        for row in values
    ]


def train_pieces(lines):
    """Returns the bytes and the pieces of a unigram model, as OPUS-MT trains them."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        model_type="unigram",
        vocab_size=60,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    library = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    pieces = [library.id_to_piece(n) for n in range(3, library.vocab_size())]
    return model.getvalue(), pieces


def marian_vocabulary(sources, targets, shared):
    """Returns a vocabulary file that lacks some pieces of the SentencePiece models."""
    (source_model, source), (target_model, target) = map(
        train_pieces, (sources, targets)
    )
    head = [*SPECIAL_PIECES, "<unk>", ">>deu<<"]
    if shared:
        source = dict.fromkeys(source + target)
    pieces = [*head, *source][:-3], None if shared else [*head, *target][:-3]
    return MarianTokenizer.from_pieces(source_model, target_model, *pieces).contents


def separate_vocabularies(folder, *sides):
    paths = [folder / f"{number}.model" for number in range(2)]
    for lines, path in zip(sides, paths, strict=True):
        build_vocabulary("sentencepiece", lines, 280, path)
    return join_vocabularies(*map(load_tokenizer, paths))


class Live:
    """Random model with weights rounded as in the page, its tokenizer and its page."""

    def __init__(self, browser, folder, kind="sentencepiece", lines=(), **settings):
        search = {"beam_size": 3, "decode_extra_length": 6}
        self.hparams = HParams(**(SIZES | search | settings), vocab_size=300)
        path = folder / f"vocab.{SUFFIXES[kind]}"
        sides = [*zip(*tiny.pairs("train"), strict=True)]
        if kind == "marian":
            path.write_bytes(marian_vocabulary(*sides, self.hparams.share_embeddings))
        elif kind == "sides":
            path.write_bytes(separate_vocabularies(folder, *sides))
        else:
            size = 300 if kind == "sentencepiece" else 60
            both = [*sides[0], *sides[1], *lines]
            build_vocabulary(kind, both, size, path)
        self.tokenizer = load_tokenizer(path)
        self.model = self.new_model()
        config = TranslationOptions().search(self.hparams, self.tokenizer)
        self.translator = Translator(self.model, self.tokenizer, config)
        page = live_page(
            *(self.model, self.hparams, path.read_bytes(), path.name, "model"),
            examples=["one", "two <b>"],
            trained_on="Trained on numbers.",
        )
        output = folder / "live.html"
        output.write_text(page, encoding="utf-8")
        self.page, self.address = browser, output.as_uri()
        self.open()

    def open(self):
        self.page.set_script_timeout(300)
        self.page.get("about:blank")
        self.page.get(self.address)

    def new_model(self, **changes):
        sizes = self.tokenizer.vocab_size, self.tokenizer.target_vocab_size
        model = build_model(self.hparams.replace(**changes), *sizes)
        generator = np.random.default_rng(1)
        for variable in model.trainable_variables:
            value = variable.numpy() + generator.normal(0, 0.3, variable.shape)
            bits = value.astype(np.float32).view(np.uint32)
            kept = 0xFFFFFFFF if model_data.MOST_EXACT_PARAMETERS else 0xFFFFFF00
            variable.assign((bits & kept).view(np.float32))
        return model

    def ids(self, text):
        return self.tokenizer.encode(tf.constant([text])).to_list()[0]

    def translations(self, texts, translator=None):
        return list((translator or self.translator).translate_lines(texts))

    def assert_translations(self, texts, expected, changes=None):
        """Asserts that the page's translations equal those of Python."""
        results = [
            call(self.page, "translate", text, {"changes": changes}) for text in texts
        ]
        for name, attribute in (("translation", "text"), ("tokens", "tokens")):
            assert [each[name] for each in results] == [
                getattr(each.best, attribute) for each in expected
            ]
        # Scores with random weights are tens of nats; Python computes them in float32.
        np.testing.assert_allclose(
            [each["score"] for each in results],
            [each.score for each in expected],
            rtol=2e-5,
        )

    def assert_scores(self, pairs, model, changes=None):
        """Asserts that the page's scores of references equal those of a model.

        Returns the expected log probabilities of each pair.
        """
        expected = []
        for texts in pairs:
            pair = [self.ids(text) for text in texts]
            # Without a causal mask, the padding of batches would be visible.
            inputs, targets = (tf.constant([ids]) for ids in pair)
            logits = model({"inputs": inputs, "targets": targets})[0]
            log_probs = tf.nn.log_softmax(logits).numpy()
            expected.append(log_probs[range(len(pair[1])), pair[1]])
            found = self.scores(pair, changes)
            np.testing.assert_allclose(found, expected[-1], atol=1e-4)
        return expected

    def scores(self, pair, changes=None):
        """Returns the page's log probability of each token of a reference."""
        options = [] if changes is None else [changes]
        return [each["logProb"] for each in call(self.page, "score", *pair, *options)]
