"""Translation of 100,000 random lines by the command and by the exported model."""

import random

import numpy as np
import pytest
import tensorflow as tf

from tests import run_command, tiny

LINES = 100_000
BATCH = 500
WORDS = [word for pair in tiny.NUMBERS for word in pair]
SPECIAL = [
    "</s>",
    "<pad>",
    "<EOS>_",
    "\u2581",
    "\ue000",
    "\u2028",
    "\x85",
    "\x0b",
    "\t",
]
SPECIAL += [
    "\ufeff",
    "\u200b",
    "\u0301",
    "\U0001f600",
    "\uffff",
    "\x7f",
    "\r",
    "|||",
    "\\",
]


def character(draw: random.Random) -> str:
    """Draws any character that is valid within a line."""
    code = draw.randrange(draw.choice([0x80, 0x250, 0x3000, 0x110000]))
    return " " if code in (0, 10) or 0xD800 <= code <= 0xDFFF else chr(code)


def line(draw: random.Random) -> str:
    """Draws a line of words, special characters and arbitrary characters."""
    kind = draw.random()
    if kind < 0.05:
        return draw.choice(["", " ", "\t \u3000", "\u2028"])
    if kind < 0.051:
        return character(draw) * draw.randrange(5000)
    sources = [WORDS, SPECIAL, None]
    pieces = []
    for _ in range(draw.randrange(1, 9)):
        source = draw.choice(sources)
        pieces.append(draw.choice(source) if source else character(draw))
    return draw.choice(["", " "]).join(pieces)


@pytest.fixture(scope="module")
def lines():
    draw = random.Random(20170612)
    return [line(draw) for _ in range(LINES)]


@pytest.mark.slow
def test_translates_100_000_random_lines(trained, lines, tmp_path):
    source, target = tmp_path / "in.en", tmp_path / "out.de"
    source.write_bytes("".join(f"{text}\n" for text in lines).encode())
    result = run_command.run(
        "translate",
        *("--model_dir", str(trained.model_dir)),
        *("--input_file", str(source), "--output_file", str(target)),
    )
    assert (result.status, result.out) == (0, "")
    translations = target.read_bytes().decode("utf-8").split("\n")
    assert translations.pop() == ""
    assert len(translations) == LINES
    for text, translation in zip(lines, translations, strict=True):
        if not text.strip():
            assert translation == ""


@pytest.mark.slow
def test_the_signature_translates_100_000_random_texts(trained, lines, tmp_path):
    """Some of the texts are random bytes."""
    flags = ("--model_dir", str(trained.model_dir), "--export_dir", str(tmp_path))
    result = run_command.run("export", *flags)
    assert result.status == 0, result.err
    loaded = tf.saved_model.load(str(tmp_path / "1"))
    signature = loaded.signatures["serving_default"]
    draw = random.Random(1)
    texts = [text.encode() for text in lines]
    for place in range(0, LINES, 10):
        texts[place] = draw.randbytes(draw.randrange(30))
    # Texts of a batch are padded to the longest one, so sorting by length saves time.
    texts.sort(key=len)
    for start in range(0, LINES, BATCH):
        batch = texts[start : start + BATCH]
        answers = signature(text=tf.constant(batch, tf.string))
        translations = answers["translations"].numpy()
        assert translations.shape == (len(batch),)
        assert np.isfinite(answers["scores"].numpy()).all()
        for text, translation in zip(batch, translations, strict=True):
            translation.decode("utf-8")
            assert translation.count(b"\n") == text.count(b"\n")
