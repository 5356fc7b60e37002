"""Tests of `train --vocab replace`."""

import numpy as np
import pytest
import tensorflow as tf

import t2t_repro
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.tokenizers.separate_tokenizer import join_vocabularies
from tests import tiny
from tests.commands.test_init_from import UNCHANGED, train, weights

# The pipeline's functions are traced also without tracing.
pytestmark = [
    pytest.mark.medium,
    pytest.mark.usefixtures("without_tracing"),
    pytest.mark.filterwarnings("ignore:Even though the `tf.config"),
]


def test_common_pieces_keep_their_rows(trained, tmp_path):
    """The learning rate is 0: the weights are those of the beginning."""
    flags = ("--init_from", trained.model_dir, "--vocab", "replace")
    command = trained, tmp_path / "new", f"{UNCHANGED},vocab_size=290", *flags
    done = train(*command)
    assert done.status == 0, done.err
    new, origin = ModelDir(tmp_path / "new"), ModelDir(trained.model_dir)
    tokenizer, old = new.tokenizer(), origin.tokenizer()
    assert (tokenizer.vocab_size, old.vocab_size) == (290, tiny.VOCAB_SIZE)
    # Ten merges less: every piece was a piece before.
    line = "vocabulary replaced: 290 of 290 subwords keep their weights"
    assert line in done.err
    before, after = weights(origin.checkpoint()), weights(new.checkpoint())
    rows = [old.pieces.index(piece) for piece in tokenizer.pieces]
    assert rows != [*range(290)]
    for name, value in before.items():
        expected = value[rows] if name == "embedding/table" else value
        np.testing.assert_array_equal(after[name], expected, err_msg=name)
    assert len(t2t_repro.load(new.path).translate(["one two", "ten"])) == 2
    # The same command finds the vocabulary of the model directory.
    again = train(*command)
    assert again.status == 0, again.err
    assert new.tokenizer().fingerprint == tokenizer.fingerprint


def test_a_given_vocabulary_starts_with_means_on_each_side(trained, tmp_path):
    separate = "share_vocab=false,share_embeddings=false"
    done = train(trained, tmp_path / "old", f"{separate},train_steps=2")
    assert done.status == 0, done.err
    origin = ModelDir(tmp_path / "old")
    old = origin.tokenizer()
    # Each side gets the vocabulary of the other one.
    path = tmp_path / "vocab.sides"
    path.write_bytes(join_vocabularies(old.target, old.source))
    flags = ("--init_from", origin.path, "--vocab", "replace", "--vocab_file", path)
    done = train(trained, tmp_path / "new", f"{UNCHANGED},{separate}", *flags)
    assert done.status == 0, done.err
    new = ModelDir(tmp_path / "new")
    before, after = weights(origin.checkpoint()), weights(new.checkpoint())
    for table, side, word in (
        ("input_embedding/table", "source", "sieben"),
        ("target_embedding/table", "target", "seven"),
        ("softmax/table", "target", "seven"),
    ):
        numbers, ids = (
            getattr(each.tokenizer(), side).encode(tf.constant([word])).to_list()[0]
            for each in (origin, new)
        )
        assert len(ids) < len(numbers)
        assert f"{side} vocabulary replaced: " in done.err
        first = getattr(new.tokenizer(), side).pieces[ids[0]]
        spelled = first.removeprefix("\u2581")
        numbers = getattr(old, side).encode(tf.constant([spelled])).to_list()[0][:-1]
        expected = before[table][numbers].astype(np.float64).mean(axis=0)
        np.testing.assert_array_equal(
            after[table][ids[0]], expected.astype(np.float32), err_msg=table
        )
