"""Tests of importing a small Marian model, against an implementation in NumPy."""

import shutil
from functools import partial

import numpy as np
import pytest

from t2t_repro.interop.import_model import import_model
from t2t_repro.interop.marian.importer import read
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.system.errors import UserError
from tests.interop.marian.small_marian import SmallMarian

LINES = [([3, 9, 4, 7], [5, 1, 12, 7]), ([20, 0, 7], [2, 7])]


def imported_logits(small, folder, source, target):
    """Returns the imported model's logits in the order of Marian's vocabulary."""
    model = read(folder)
    pieces = model.tokenizer.pieces
    ids = [
        np.array([[pieces.index(small.pieces[token]) for token in side]])
        for side in (source, target)
    ]
    logits = np.asarray(model.build()({"inputs": ids[0], "targets": ids[1]}))[0]
    assert (logits[:, 0] < -5000).all()
    return logits[:, [pieces.index(piece) for piece in small.pieces]]


@pytest.mark.parametrize("activation", ["relu", "swish", "gelu"])
def test_logits_equal_the_numpy_implementation(tmp_path, activation):
    small = SmallMarian()
    small.options["transformer-ffn-activation"] = activation
    folder = small.write(tmp_path / "marian")
    for source, target in LINES:
        logits = imported_logits(small, folder, source, target)
        expected = small.logits(source, target)
        np.testing.assert_allclose(logits, expected, atol=1e-4, rtol=0)


def test_gelu_of_an_older_marian_is_the_sigmoid_form(tmp_path):
    small = SmallMarian()
    small.options["transformer-ffn-activation"] = "gelu"
    small.options["version"] = "v1.9.0 0000000"
    small.zeros = 3
    hparams = read(small.write(tmp_path / "marian")).hparams
    assert hparams.activation == "gelu_sigmoid"


def test_search_hparams_come_from_decoder_yml(tmp_path):
    small = SmallMarian()
    small.decoder["word-penalty"] = 0.25
    folder = small.write(tmp_path / "marian")
    report = import_model(lambda: read(folder), tmp_path / "model")
    hparams = ModelDir(tmp_path / "model").hparams()
    assert hparams.search == "marian"
    assert (hparams.beam_size, hparams.alpha, hparams.word_penalty) == (3, 0.5, 0.25)
    assert (hparams.decode_length_factor, hparams.decode_extra_length) == (3.0, 0)
    assert not hparams.allow_unknown
    assert report.unused["settings of the search"] == ["mini-batch"]


def test_vocabulary_keeps_the_word_no_as_text(tmp_path):
    small = SmallMarian()
    folder = small.write(tmp_path / "marian")
    import_model(lambda: read(folder), tmp_path / "model")
    tokenizer = ModelDir(tmp_path / "model").tokenizer()
    assert tokenizer.vocab_size == len(small.pieces) + 1
    assert tokenizer.pieces[:4] == ["<pad>", "</s>", "<unk>", "no"]


def test_languages_come_from_flags_or_files_or_defaults(tmp_path):
    """Only the Transformers folder contains languages: en and fi."""
    for write, flags, languages, unused in (
        (SmallMarian().write, (None, None), ("en", "de"), None),
        (SmallMarian().write_transformers, (None, None), ("en", "fi"), None),
        (SmallMarian().write_transformers, ("en", "se"), ("en", "se"), ["fi"]),
    ):
        folder = write(tmp_path / "folder")
        report = import_model(partial(read, folder), tmp_path / "model", flags)
        provenance = ModelDir(tmp_path / "model").provenance()
        assert (provenance.source_lang, provenance.target_lang) == languages
        assert report.languages == languages
        assert report.unused.get("languages of the files") == unused
        for path in (folder, tmp_path / "model"):
            shutil.rmtree(path)


UNSUPPORTED = {
    "type": "amun",
    "transformer-decoder-autoreg": "rnn",
    "transformer-train-position-embeddings": True,
    "transformer-ffn-depth": 3,
    "transformer-no-projection": True,
    "transformer-no-bias": True,
    "transformer-no-affine": True,
    "transformer-tied-layers": [1, 1],
    "transformer-postprocess-emb": "nd",
    "transformer-postprocess": "dhn",
    "transformer-ffn-activation": "mish",
    "factors-dim-emb": 4,
    "ulr": True,
    "right-left": True,
    "input-types": ["sequence", "class"],
    "transformer-of-tomorrow": True,
}


@pytest.mark.parametrize("option", UNSUPPORTED)
def test_rejects_an_unsupported_option_by_name(tmp_path, option):
    small = SmallMarian()
    small.options[option] = UNSUPPORTED[option]
    folder = small.write(tmp_path / "marian")
    with pytest.raises(UserError, match=f"{option}: .* not supported"):
        import_model(lambda: read(folder), tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["marian"]


def test_rejects_wrong_surplus_and_missing_weights(tmp_path):
    small = SmallMarian()
    small.arrays["decoder_l1_self_Wq"] = np.zeros((3, 8), np.float32)
    with pytest.raises(UserError, match="decoder_l1_self_Wq has the shape"):
        read(small.write(tmp_path / "shape"))
    small = SmallMarian()
    small.arrays["decoder_l2_self_Wq"] = np.zeros((8, 8), np.float32)
    with pytest.raises(UserError, match="decoder_l2_self_Wq does not belong"):
        read(small.write(tmp_path / "more"))
    small = SmallMarian()
    del small.arrays["encoder_l1_ffn_b1"]
    with pytest.raises(UserError, match="lacks encoder_l1_ffn_b1"):
        read(small.write(tmp_path / "less"))
