"""A hundred thousand random lines: none is lost, none brings the translation down."""

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
    """Draws any character but those that end a line or cannot stand in a text."""
    code = draw.randrange(draw.choice([0x80, 0x250, 0x3000, 0x110000]))
    return " " if code in (0, 10) or 0xD800 <= code <= 0xDFFF else chr(code)


def line(draw: random.Random) -> str:
    """Draws a line: words, odd characters, any characters, nothing, a long one."""
    kind = draw.random()
    if kind < 0.05:
        return draw.choice(["", " ", "\t \u3000", "\u2028"])
    if kind < 0.051:
        return character(draw) * draw.randrange(5000)
    pieces = [WORDS, SPECIAL, None]
    found = []
    for _ in range(draw.randrange(1, 9)):
        piece = draw.choice(pieces)
        found.append(draw.choice(piece) if piece else character(draw))
    return draw.choice(["", " "]).join(found)


@pytest.fixture(scope="module")
def lines():
    draw = random.Random(20170612)
    return [line(draw) for _ in range(LINES)]


@pytest.mark.slow
def test_translate_gives_a_line_for_each_of_100_000_random_lines(
    trained, lines, tmp_path
):
    source, target = tmp_path / "in.en", tmp_path / "out.de"
    source.write_bytes("".join(f"{text}\n" for text in lines).encode())
    done = run_command.run(
        "translate",
        *("--model_dir", str(trained.model_dir)),
        *("--input_file", str(source), "--output_file", str(target)),
    )
    assert (done.status, done.out) == (0, "")
    found = target.read_bytes().decode("utf-8").split("\n")
    assert found.pop() == ""
    assert len(found) == LINES
    for text, translation in zip(lines, found, strict=True):
        if not text.strip():
            assert translation == ""


@pytest.mark.slow
def test_the_served_signature_answers_each_of_100_000_random_texts(
    trained, lines, tmp_path
):
    """And bytes that are no text at all."""
    flags = ("--model_dir", str(trained.model_dir), "--export_dir", str(tmp_path))
    done = run_command.run("export", *flags)
    assert done.status == 0, done.err
    loaded = tf.saved_model.load(str(tmp_path / "1"))
    signature = loaded.signatures["serving_default"]
    draw = random.Random(1)
    texts = [text.encode() for text in lines]
    for place in range(0, LINES, 10):
        texts[place] = draw.randbytes(draw.randrange(30))
    # A server pads a request to its longest text.
    texts.sort(key=len)
    for start in range(0, LINES, BATCH):
        batch = texts[start : start + BATCH]
        answers = signature(text=tf.constant(batch, tf.string))
        translations = answers["translations"].numpy()
        assert translations.shape == (len(batch),)
        assert np.isfinite(answers["scores"].numpy()).all()
        for translation in translations:
            assert "\n" not in translation.decode("utf-8")
