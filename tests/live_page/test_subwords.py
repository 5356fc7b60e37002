"""Tests of the live page's tokenizers against those of Python."""

import io
import random

import pytest
import sentencepiece
import tensorflow as tf

pytest.importorskip("selenium.webdriver", reason="selenium is absent")

from t2t_repro.live_page.model_data import live_tokenizer
from t2t_repro.live_page.page import live_runtime
from t2t_repro.system.atomic_file import read_lines
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.marian_tokenizer import SPECIAL_PIECES, MarianTokenizer
from t2t_repro.tokenizers.sentencepiece_tokenizer import model_proto
from t2t_repro.tokenizers.tokenizer import EOS_ID
from t2t_repro.tokenizers.vocabulary import build_vocabulary
from tests.run_command import ROOT

LINES = read_lines(ROOT / "README.md") + read_lines(ROOT / "CHANGELOG.md")
ODD = [
    *(
        "",
        " ",
        " one  two ",
        "</s>",
        "<pad>",
        "<unk>",
        "\u2581",
        "a\u2581",
        "\u2581\u2581x",
    ),
    *(
        "\ue000",
        "\\_u;",
        "e\u0301",
        "\u05e9\u05dc\u05d5\u05dd",
        "\u65e5\u672c",
        "\0one",
        "\tx\ty",
        "\ufb01\u3000\u2460",
    ),
    *(
        "\U0001f468\u200d\U0001f469",
        "\u1e9e STRASSE",
        "\u200b \u200b",
        "\u00a0a\u00a0",
        "\ufeffa",
    ),
    *("a" * 50, "x " * 20, "\u2047", "10,000"),
]


def train_model(**options):
    """Trains a SentencePiece model and returns its bytes."""
    model = io.BytesIO()
    ids = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES),
        model_writer=model,
        minloglevel=2,
        hard_vocab_limit=False,
        **({"model_type": "bpe", "vocab_size": 800} | ids | options),
    )
    return model.getvalue()


def with_unused_pieces(contents):
    proto = model_proto(contents)
    for piece in proto.pieces[3:400:2]:
        piece.type = piece.UNUSED
    return proto.SerializeToString()


def in_browser(browser, path, lines, rows):
    """Encodes lines and decodes rows of ids with the page's tokenizer."""
    data = live_tokenizer(path.read_bytes(), path.name)
    return browser.execute_script(
        live_runtime() + "const [data, lines, rows] = arguments;"
        "const tokenizer = new Tokenizer(data);"
        "return [lines.map((line) => [...tokenizer.encode(line), EOS]),"
        " rows.map((row) => tokenizer.decode(row))]",
        *(data, lines, rows),
    )


def assert_equal(browser, path, lines, rows):
    tokenizer = load_tokenizer(path)
    ids = tokenizer.encode(tf.constant(lines)).to_list()
    rows = [*rows, *ids]
    texts = tokenizer.decode(tf.ragged.constant(rows, dtype=tf.int32)).numpy()
    found_ids, found_texts = in_browser(browser, path, lines, rows)
    assert found_ids == ids
    assert found_texts == [text.decode("utf-8", "replace") for text in texts]


# With each rule, any two of the other options have all combinations of values.
@pytest.mark.medium
@pytest.mark.parametrize("rule", ["identity", "nmt_nfkc", "nfkc_cf"])
@pytest.mark.parametrize(
    ("bytes_", "prefix", "removes"),
    [(a, b, a == b) for a in (False, True) for b in (False, True)],
)
def test_sentencepiece_with_every_rule(
    browser, tmp_path, rule, bytes_, prefix, removes
):
    path = tmp_path / "vocab.model"
    contents = train_model(
        normalization_rule_name=rule,
        byte_fallback=bytes_,
        add_dummy_prefix=prefix,
        remove_extra_whitespaces=removes,
        character_coverage=0.99,  # Some characters are unknown.
    )
    path.write_bytes(contents)
    generator = random.Random(1)
    rows = [generator.choices(range(2, 600), k=size % 9) for size in range(200)]
    assert_equal(browser, path, ODD + LINES, rows)


@pytest.mark.medium
@pytest.mark.parametrize(
    "options",
    [
        {"unk_surface": "??", "character_coverage": 0.98},
        {"split_by_whitespace": False},
        {"allow_whitespace_only_pieces": True, "remove_extra_whitespaces": False},
        {"model_type": "char"},
        {"model_type": "unigram", "byte_fallback": True},
        {"model_type": "unigram", "character_coverage": 0.98, "unused": True},
        {"unused": True},
    ],
)
def test_other_options_of_sentencepiece(browser, tmp_path, options):
    path = tmp_path / "vocab.model"
    is_unused = options.pop("unused", False)
    contents = train_model(**options)
    path.write_bytes(with_unused_pieces(contents) if is_unused else contents)
    assert_equal(browser, path, ODD + LINES, [])


# Without models, texts are pieces of subword-nmt.
@pytest.mark.medium
@pytest.mark.parametrize("has_models", [True, False])
def test_options_of_marian_vocabularies(browser, tmp_path, has_models):
    model = train_model(model_type="unigram", character_coverage=0.98)
    pieces = [piece.piece for piece in model_proto(model).pieces]
    added = {"|": True, "README": False, "READ": True}
    names = dict.fromkeys([*SPECIAL_PIECES, ">>deu<<", *added, *pieces[::-1][50:]])
    models = (model, model) if has_models else (None, None)
    tokenizer = MarianTokenizer.from_pieces(
        *models, [*names], source_start=">>deu<<", added=added
    )
    path = tmp_path / "vocab.marian"
    path.write_bytes(tokenizer.contents)
    lines = ODD + LINES + [">>deu<< READMEREAD a", ">>x<<|", "a >>deu<< | b"]
    encoder = tokenizer.plain
    ids = [[*encoder.source.encode(line), EOS_ID] for line in lines]
    found_ids, found_texts = in_browser(browser, path, lines, ids)
    assert found_ids == ids
    assert found_texts == [encoder.decode(row) for row in ids]


def unescaped(contents):
    proto = model_proto(contents)
    proto.normalizer_spec.escape_whitespaces = False
    return proto.SerializeToString()


@pytest.mark.parametrize(
    ("contents", "name"),
    [
        (lambda: train_model(model_type="word"), "model_type word"),
        (
            lambda: train_model(treat_whitespace_as_suffix=True),
            "treat_whitespace_as_suffix",
        ),
        (
            lambda: train_model(user_defined_symbols="<x>,Hund"),
            r"user_defined_symbols \(<x>, Hund\)",
        ),
        (lambda: unescaped(train_model()), "escape_whitespaces off"),
    ],
)
def test_rejects_unsupported_options_of_sentencepiece(contents, name):
    advice = "use visualize"
    with pytest.raises(UserError, match=f"SentencePiece's {name}; {advice}"):
        live_tokenizer(contents(), "vocab.model")


@pytest.mark.medium
@pytest.mark.parametrize("count", [1000, pytest.param(5000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["tensor2tensor", "sentencepiece", "wordpiece"])
def test_thousands_of_lines_of_multi30k_and_tatoeba(
    browser, tmp_path, shared_dir, kind, count
):
    lines = []
    for corpus in ("multi30k", "tatoeba-en-de"):
        for language in ("en", "de"):
            path = shared_dir / f"corpora/{corpus}/train.{language}"
            lines += read_lines(path)[:count]
    if kind == "tensor2tensor":
        path = shared_dir / "t2t/multi30k_reference/spm6k.model"
    else:
        suffix = {"sentencepiece": "model", "wordpiece": "subwords"}[kind]
        path = tmp_path / f"vocab.{suffix}"
        build_vocabulary(kind, lines[::5], 4 * count // 5, path)
    assert_equal(browser, path, lines, [])
