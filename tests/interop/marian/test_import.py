"""Importing a small Marian model, compared with its formulas in NumPy."""

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


def our_logits(small, folder, source, target):
    model = read(folder)
    ours = model.tokenizer.pieces
    ids = [
        np.array([[ours.index(small.pieces[one]) for one in side]])
        for side in (source, target)
    ]
    logits = np.asarray(model.build()({"inputs": ids[0], "targets": ids[1]}))[0]
    assert (logits[:, 0] < -5000).all()
    return logits[:, [ours.index(piece) for piece in small.pieces]]


@pytest.mark.parametrize("activation", ["relu", "swish", "gelu"])
def test_logits_are_those_of_the_formulas(tmp_path, activation):
    small = SmallMarian()
    small.options["transformer-ffn-activation"] = activation
    folder = small.write(tmp_path / "marian")
    for source, target in LINES:
        found = our_logits(small, folder, source, target)
        expected = small.logits(source, target)
        np.testing.assert_allclose(found, expected, atol=1e-4, rtol=0)


def test_an_older_marian_had_another_gelu(tmp_path):
    small = SmallMarian()
    small.options["transformer-ffn-activation"] = "gelu"
    small.options["version"] = "v1.9.0 0000000"
    small.zeros = 3
    hparams = read(small.write(tmp_path / "marian")).hparams
    assert hparams.activation == "gelu_sigmoid"


def test_the_search_is_the_one_of_decoder_yml(tmp_path):
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


def test_the_vocabulary_has_words_that_yaml_takes_for_others(tmp_path):
    small = SmallMarian()
    folder = small.write(tmp_path / "marian")
    import_model(lambda: read(folder), tmp_path / "model")
    tokenizer = ModelDir(tmp_path / "model").tokenizer()
    assert tokenizer.vocab_size == len(small.pieces) + 1
    assert tokenizer.pieces[:4] == ["<pad>", "</s>", "<unk>", "no"]


def test_languages_are_those_given_or_of_the_files_or_the_default(tmp_path):
    """Transformers' file names en and fi, Marian's none."""
    for write, given, languages, unused in (
        (SmallMarian().write, (None, None), ("en", "de"), None),
        (SmallMarian().write_transformers, (None, None), ("en", "fi"), None),
        (SmallMarian().write_transformers, ("en", "se"), ("en", "se"), ["fi"]),
    ):
        folder = write(tmp_path / "folder")
        report = import_model(partial(read, folder), tmp_path / "model", given)
        provenance = ModelDir(tmp_path / "model").provenance()
        assert (provenance.source_lang, provenance.target_lang) == languages
        assert (report.source_lang, report.target_lang) == languages
        assert report.unused.get("languages of the files") == unused
        for made in (folder, tmp_path / "model"):
            shutil.rmtree(made)


REFUSED = {
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


@pytest.mark.parametrize("option", REFUSED)
def test_another_model_is_refused_by_name(tmp_path, option):
    small = SmallMarian()
    small.options[option] = REFUSED[option]
    folder = small.write(tmp_path / "marian")
    with pytest.raises(UserError, match=f"{option}: .* not supported here"):
        import_model(lambda: read(folder), tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["marian"]


def cut_off(folder):
    path = folder / "model.npz"
    path.write_bytes(path.read_bytes()[:-300])


def one_piece_less(folder):
    path = folder / "vocab.yml"
    path.write_text("\n".join(path.read_text().splitlines()[:-1]))


def pickled(folder):
    np.savez(folder / "model.npz", Wemb=np.array([{}], object))


def no_pieces(folder):
    (folder / "source.spm").write_bytes(b"")


DAMAGES = {
    "no npz of numbers": cut_off,
    "belong to different models": one_piece_less,
    "damaged": pickled,
    "no such file": lambda folder: (folder / "vocab.yml").unlink(),
    "download has": lambda folder: (folder / "target.spm").unlink(),
    "found none": lambda folder: (folder / "decoder.yml").unlink(),
    "no YAML": lambda folder: (folder / "vocab.yml").write_text("{: ["),
    "SentencePiece": no_pieces,
}


@pytest.mark.parametrize("words", DAMAGES)
def test_damaged_and_missing_files_are_one_line(tmp_path, words):
    folder = SmallMarian().write(tmp_path / "marian")
    DAMAGES[words](folder)
    with pytest.raises(UserError, match=words) as caught:
        import_model(lambda: read(folder), tmp_path / "model")
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["marian"]


def test_weights_of_another_model_are_refused(tmp_path):
    small = SmallMarian()
    small.arrays["decoder_l1_self_Wq"] = np.zeros((3, 8), np.float32)
    with pytest.raises(UserError, match="decoder_l1_self_Wq has the shape"):
        read(small.write(tmp_path / "shape"))
    small = SmallMarian()
    small.arrays["decoder_l2_self_Wq"] = np.zeros((8, 8), np.float32)
    with pytest.raises(UserError, match="decoder_l2_self_Wq is no part"):
        read(small.write(tmp_path / "more"))
    small = SmallMarian()
    del small.arrays["encoder_l1_ffn_b1"]
    with pytest.raises(UserError, match="has no encoder_l1_ffn_b1"):
        read(small.write(tmp_path / "less"))
