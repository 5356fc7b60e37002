"""Tests of `train --vocab extend`."""

import numpy as np
import pytest
import tensorflow as tf

import t2t_repro
from t2t_repro.runs.model_dir import ModelDir
from tests import tiny
from tests.commands.test_init_from import UNCHANGED, train, weights

# The pipeline's functions are traced also without tracing.
pytestmark = [
    pytest.mark.medium,
    pytest.mark.usefixtures("without_tracing"),
    pytest.mark.filterwarnings("ignore:Even though the `tf.config"),
]


def test_an_extended_model_keeps_its_old_rows(trained, tmp_path):
    """The learning rate is 0: the weights are those of the beginning."""
    words = tmp_path / "words.txt"
    words.write_text("ninety\nsechzig\n", encoding="utf-8")
    flags = ("--init_from", trained.model_dir, "--vocab", "extend")
    command = trained, tmp_path / "new", UNCHANGED, *flags, "--vocab_tokens", words
    done = train(*command)
    assert done.status == 0, done.err
    new, origin = ModelDir(tmp_path / "new"), ModelDir(trained.model_dir)
    tokenizer, old = new.tokenizer(), origin.tokenizer()
    size = old.vocab_size
    line = f"vocabulary extended by 2 words: {size} to {tokenizer.vocab_size} subwords"
    assert line in done.err
    assert tokenizer.pieces[:size] == old.pieces
    before, after = weights(origin.checkpoint()), weights(new.checkpoint())
    for name, value in before.items():
        np.testing.assert_array_equal(after[name][: len(value)], value, err_msg=name)
    table = before["embedding/table"]
    for word in ("ninety", "sechzig"):
        (number, _), spelling = (
            each.encode(tf.constant([word])).to_list()[0] for each in (tokenizer, old)
        )
        assert number >= size
        rows = table[spelling[:-1]].astype(np.float64)
        expected = (rows.sum(axis=0) / len(rows)).astype(np.float32)
        np.testing.assert_array_equal(after["embedding/table"][number], expected)
    text = ["ninety nine", "one"]
    assert len(t2t_repro.load(new.path).translate(text)) == 2
    # The same command finds the extended vocabulary in the model directory.
    again = train(*command)
    assert again.status == 0, again.err
    assert new.tokenizer().fingerprint == tokenizer.fingerprint


def test_learned_words_are_those_of_the_training_text(trained, tmp_path):
    flags = ("--init_from", trained.model_dir, "--vocab", "extend")
    done = train(trained, tmp_path / "new", UNCHANGED, *flags, "--vocab_words", 3)
    assert done.status == 0, done.err
    new, old = (ModelDir(p).tokenizer() for p in (tmp_path / "new", trained.model_dir))
    words = sorted({w for pair in tiny.NUMBERS for w in pair})
    lengths = [each.encode(tf.constant(words)).row_lengths() for each in (old, new)]
    shorter = [w for w, a, b in zip(words, *lengths, strict=True) if a > b]
    assert len(shorter) == min(3, sum(int(each) > 2 for each in lengths[0]))
