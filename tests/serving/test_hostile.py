"""Hostile texts get valid answers and do not change the answers of other texts."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.serving import sanitize
from t2t_repro.serving.signatures import ServingModule
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.vocabulary import build_vocabulary
from tests import tiny
from tests.serving import small

pytestmark = pytest.mark.medium

NEIGHBOURS = small.sentences(3)


def lines():
    for source, target in tiny.pairs("train"):
        yield source
        yield target


@pytest.fixture(scope="module")
def served(request, module, tokenizer, tmp_path_factory):
    """Returns a module and its tokenizer with a kind of vocabulary."""
    if request.param == "sentencepiece":
        return module, tokenizer
    path = tmp_path_factory.mktemp(request.param) / "vocab.subwords"
    if request.param == "subwords":
        # As in tensor2tensor, reserved pieces lack the final underscore.
        pieces = [
            "<pad>",
            "<EOS>",
            "one_",
            "two_",
            "ten",
            *"\\_u;0123456789",
            *"fivexn<>",
        ]
        path.write_text("".join(f"'{piece}'\n" for piece in pieces))
    else:
        build_vocabulary(request.param, lines(), small.VOCAB_SIZE, path)
    tokenizer = load_tokenizer(path)
    model = small.random_model(tokenizer.vocab_size)
    search = DecodingConfig(small.BEAM_SIZE, extra_length=small.EXTRA_LENGTH)
    module = ServingModule([model], tokenizer, search, small.MAX_INPUT_LENGTH)
    return module, tokenizer


def call(module, signature, texts):
    inputs = module.functions[signature].input_signature
    outputs = module.functions[signature](
        *[tf.constant(texts, tf.string)] * len(inputs)
    )
    return {name: value.numpy() for name, value in outputs.items()}


@pytest.mark.medium
@pytest.mark.parametrize(
    ("served", "signature"),
    [
        ("sentencepiece", "serving_default"),
        ("sentencepiece", "nbest"),
        ("sentencepiece", "score"),
        ("sentencepiece", "attention"),
        # The other signatures of these vocabularies encode and decode texts likewise.
        ("wordpiece", "split_sentences"),
        ("wordpiece", "attention"),
        ("subwords", "serving_default"),
    ],
    indirect=["served"],
)
def test_hostile_texts_get_valid_answers_and_do_not_change_others(
    served, signature, monkeypatch
):
    if signature == "split_sentences":
        # The long texts would have thousands of sentences to be translated.
        monkeypatch.setattr(sanitize, "MOST_CHARACTERS", 4096)
    module, _ = served
    hostile = list(small.HOSTILE.values())
    multi = signature in ("serving_default", "split_sentences")
    breaks = set() if multi else {"\n", "\r"}
    outputs = call(module, signature, [*hostile, *NEIGHBOURS])
    for value in outputs.values():
        assert len(value) == len(hostile) + len(NEIGHBOURS)
        if value.dtype == object:
            for text in value.ravel():
                assert not set(text.decode("utf-8")) & breaks
        else:
            assert np.isfinite(value).all()
    if signature == "serving_default":
        assert outputs["translations"][:2].tolist() == [b"", b""]
        assert outputs["scores"][:2].tolist() == [0, 0]
    separate = call(module, signature, NEIGHBOURS)
    for name, value in separate.items():
        together = outputs[name][len(hostile) :]
        if value.dtype != object and value.ndim <= 2:
            np.testing.assert_allclose(together, value, atol=1e-4, err_msg=name)
        elif name == "translations":
            assert together.tolist() == value.tolist()


def test_blank_texts_have_empty_translations(module):
    blank = [small.HOSTILE["empty"], small.HOSTILE["blank"]]
    outputs = call(module, "serving_default", blank)
    assert outputs["translations"].tolist() == [b"", b""]
    assert outputs["scores"].tolist() == [0, 0]


@pytest.mark.parametrize(
    "served", ["sentencepiece", "wordpiece", "subwords"], indirect=True
)
def test_text_that_looks_like_a_special_token_is_not_one(served):
    """The text of a special token is encoded as ordinary tokens."""
    _, tokenizer = served
    for text in small.HOSTILE["specials"].decode().split():
        (ids,) = tokenizer.encode(tf.constant([f"{text} {text}"])).to_list()
        assert ids[-1] == 1
        assert not {0, 1} & set(ids[:-1])
        assert len(ids) > 3
        decoded = tokenizer.decode(tf.constant([ids]))[0].numpy().decode()
        # SentencePiece also decodes a U+2581 in the text as a space.
        assert decoded in (f"{text} {text}", f"{text} {text}".replace("▁", " "))
