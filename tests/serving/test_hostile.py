"""Whatever is sent, the answer is valid and the neighbours' are as they were."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
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


@pytest.fixture(scope="module", params=["sentencepiece", "wordpiece", "subwords"])
def served(request, tmp_path_factory):
    """A module over each kind of vocabulary, and what encodes for it."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "subwords":
        # As tensor2tensor wrote them: reserved pieces without the final underscore.
        pieces = [
            "<pad>",
            "<EOS>",
            "one_",
            "two_",
            "ten",
            *"\\_u;0123456789",
            *"fivexn<>",
        ]
        path = folder / "vocab.subwords"
        path.write_text("".join(f"'{piece}'\n" for piece in pieces))
    else:
        suffix = "model" if request.param == "sentencepiece" else "subwords"
        path = folder / f"vocab.{suffix}"
        build_vocabulary(request.param, lines(), small.VOCAB_SIZE, path)
    tokenizer = load_tokenizer(path)
    model = small.random_model(tokenizer.vocab_size)
    search = DecodingConfig(small.BEAM_SIZE, extra_length=small.EXTRA_LENGTH)
    return ServingModule([model], tokenizer, search, small.MAX_INPUT_LENGTH), tokenizer


def ask(module, signature, texts):
    inputs = module.functions[signature].input_signature
    found = module.functions[signature](*[tf.constant(texts, tf.string)] * len(inputs))
    return {name: value.numpy() for name, value in found.items()}


@pytest.mark.medium
@pytest.mark.parametrize(
    "signature", ["serving_default", "nbest", "score", "attention"]
)
def test_every_text_has_a_valid_answer_and_harms_no_neighbour(served, signature):
    module, _ = served
    hostile = list(small.HOSTILE.values())
    found = ask(module, signature, [*hostile, *NEIGHBOURS])
    for value in found.values():
        assert len(value) == len(hostile) + len(NEIGHBOURS)
        if value.dtype == object:
            for text in value.ravel():
                assert not set(text.decode("utf-8")) & {"\n", "\r"}
        else:
            assert np.isfinite(value).all()
    alone = ask(module, signature, NEIGHBOURS)
    for name, value in alone.items():
        together = found[name][len(hostile) :]
        if value.dtype != object and value.ndim <= 2:
            np.testing.assert_allclose(together, value, atol=1e-4, err_msg=name)
        elif name == "translations":
            assert together.tolist() == value.tolist()


def test_blank_texts_are_answered_with_nothing(served):
    module, _ = served
    blank = [small.HOSTILE["empty"], small.HOSTILE["blank"]]
    found = ask(module, "serving_default", blank)
    assert found["translations"].tolist() == [b"", b""]
    assert found["scores"].tolist() == [0, 0]


def test_what_looks_like_a_symbol_is_none(served):
    """Written out, they are spelled with other symbols than those they name."""
    _, tokenizer = served
    for text in small.HOSTILE["specials"].decode().split():
        (ids,) = tokenizer.encode(tf.constant([f"{text} {text}"])).to_list()
        assert ids[-1] == 1
        assert not {0, 1} & set(ids[:-1])
        assert len(ids) > 3
        decoded = tokenizer.decode(tf.constant([ids]))[0].numpy().decode()
        # U+2581 is how SentencePiece writes a space, in a text too.
        assert decoded in (f"{text} {text}", f"{text} {text}".replace("▁", " "))
