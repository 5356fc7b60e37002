"""Signatures that take ids give the results of those that take text."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.decode_loop import NO_HYPOTHESIS
from t2t_repro.serving import id_signatures
from t2t_repro.serving.id_signatures import check_and_cut_rows
from t2t_repro.serving.server.batching import merge
from t2t_repro.serving.signatures import ServingModule
from t2t_repro.tokenizers import plain_tokenizer
from tests.serving import small

TEXTS = [*small.sentences(5), "", "\u200b", " ".join(small.sentences(9))]


@pytest.fixture(scope="module")
def of_ids(marian_arguments):
    """Returns `marian_module` for ids, in small micro-batches."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(id_signatures, "SEARCH_POSITIONS", 100)
        module = ServingModule(*marian_arguments, takes_ids=True)
        for function in module.functions.values():
            function.get_concrete_function()
    return module


@pytest.fixture(scope="module")
def tokenizer(marian_arguments, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    marian_arguments[1].save_for_clients(folder)
    return plain_tokenizer.load(folder)


def call(module, signature, *inputs):
    outputs = module.functions[signature](*map(tf.constant, inputs))
    return {name: value.numpy() for name, value in outputs.items()}


@pytest.mark.medium
def test_translations_of_ids_equal_those_of_text(of_ids, marian_module, tokenizer):
    ids = plain_tokenizer.pad([tokenizer.encode(text) for text in TEXTS])
    assert len(ids[0]) > small.MAX_INPUT_LENGTH
    outputs = call(of_ids, "serving_default", ids)
    expected = call(marian_module, "serving_default", TEXTS)
    texts = [tokenizer.decode(row) for row in outputs["outputs"]]
    assert texts == [text.decode() for text in expected["translations"]]
    np.testing.assert_allclose(outputs["scores"], expected["scores"], atol=1e-4)
    assert outputs["notes"].tolist() == expected["notes"].tolist()
    assert any(outputs["notes"])
    for blank in ("", "\u200b"):
        assert not outputs["outputs"][TEXTS.index(blank)].any()
    assert outputs["outputs"].any(axis=0).all()  # No column is only padding.
    lists = call(of_ids, "nbest", ids)
    np.testing.assert_array_equal(lists["outputs"][:, 0], outputs["outputs"])
    np.testing.assert_allclose(lists["scores"][:, 0], outputs["scores"], atol=1e-4)
    assert (np.diff(lists["scores"]) <= 0).all()
    assert not lists["outputs"][lists["scores"] == NO_HYPOTHESIS].any()
    # The server pads merged requests with the first id of each.
    requests = [{"inputs": np.array([tokenizer.encode(text)])} for text in TEXTS]
    merged = merge(requests, len(TEXTS), pad=True)["inputs"]
    again = call(of_ids, "serving_default", merged.astype(np.int32))
    np.testing.assert_array_equal(again["outputs"], outputs["outputs"])


@pytest.mark.medium
def test_scores_of_ids_equal_those_of_text(of_ids, marian_module, tokenizer):
    translations = ["", "eins zwei", *TEXTS[2:]]
    inputs = plain_tokenizer.pad([tokenizer.encode(text) for text in TEXTS])
    targets = [tokenizer.encode_target(text) for text in translations]
    outputs = call(of_ids, "score", inputs, plain_tokenizer.pad(targets))
    expected = call(marian_module, "score", TEXTS, translations)
    np.testing.assert_allclose(
        *(each["log_probability"] for each in (outputs, expected))
    )
    texts = [">>xyz<< one", " >>deu<< one", ">>deu<< one"]
    assert call(marian_module, "score", texts, ["", "", ""])["notes"].tolist() == [
        b"label that is not in the vocabulary: >>xyz<<",
        b"label that is read as text: >>deu<<",
        b"",
    ]
    with pytest.raises(tf.errors.InvalidArgumentError, match="number of rows"):
        call(of_ids, "score", inputs, [[1]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="each row of targets"):
        call(of_ids, "score", [[5, 1]], [[5]])


@pytest.mark.medium
def test_an_empty_batch_has_empty_outputs(of_ids):
    outputs = call(of_ids, "nbest", np.zeros((0, 4), np.int32))
    assert outputs["outputs"].shape == (0, small.BEAM_SIZE, 0)
    assert outputs["scores"].shape == (0, small.BEAM_SIZE)


def test_ids_after_the_end_are_padding():
    rows = check_and_cut_rows(tf.constant([[7, 1, 99, -1], [2, 8, 9, 1]]), 10, "inputs")
    assert rows.to_list() == [[7, 1], [2, 8, 9, 1]]


@pytest.mark.parametrize(
    "row", [[5, 6, 7], [0, 5, 1], [5, 10, 1], [5, -1, 1], [0, 0, 0]]
)
def test_rejects_rows_that_are_no_ids_of_a_text(row):
    message = r"each row of inputs must consist of ids from 2 to 9, then EOS \(1\)"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        check_and_cut_rows(tf.constant([[5, 1, 0], row]), 10, "inputs")
