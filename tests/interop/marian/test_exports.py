"""Exports equal the folders that the models were imported from."""

import json

import numpy as np
import pytest
import yaml

from t2t_repro.interop.formats.npz import read_npz
from t2t_repro.interop.formats.safetensors import read_safetensors
from t2t_repro.interop.marian.importer import read
from t2t_repro.interop.marian.marian_export import SUPPORTED as MARIAN
from t2t_repro.interop.marian.marian_export import write_marian
from t2t_repro.interop.marian.options import OPTIONS, read_yaml
from t2t_repro.interop.marian.transformers_export import SUPPORTED as TRANSFORMERS
from t2t_repro.interop.marian.transformers_export import write_transformers
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.marian_tokenizer import MarianTokenizer
from t2t_repro.translation.options import TranslationOptions
from tests import tiny
from tests.interop.marian.small_marian import SmallMarian
from tests.interop.marian.test_more_folders import piece_model, write_safetensors


def export(source, folder, program):
    """Exports an imported model and checks that it is imported as before."""
    folder.mkdir()
    search = TranslationOptions().search(source.hparams, source.tokenizer)
    arguments = source.build(), source.tokenizer, source.hparams, search
    if program == "marian":
        MARIAN.check(source.hparams)
        write_marian(*arguments, folder)
    else:
        TRANSFORMERS.check(source.hparams)
        write_transformers(*arguments, ("en", "fi"), folder)
    position = source.hparams.position
    again = read(folder, "marian" if position == "sinusoid" else "transformers")
    assert again.tokenizer.fingerprint == source.tokenizer.fingerprint
    assert again.weights.keys() == source.weights.keys()
    for name, value in source.weights.items():
        np.testing.assert_array_equal(again.weights[name], value)
    return again


def rows_by_piece(table, ids):
    return {piece: table[number].tolist() for piece, number in ids.items()}


def read_ids(path):
    return {piece: int(number) for piece, number in read_yaml(path).items()}


def assert_same_arrays(arrays, originals, of_vocabulary):
    """Compares all arrays; those with a row per piece are compared by piece."""
    assert arrays.keys() == originals.keys()
    for name, original in originals.items():
        array = arrays[name]
        if name in of_vocabulary:
            ids, original_ids = of_vocabulary[name]
            if len(array) == 1:
                array, original = array[0], original[0]
            array = rows_by_piece(array, ids)
            assert array == rows_by_piece(original, original_ids), name
        else:
            np.testing.assert_array_equal(array, original, err_msg=name)
            assert array.dtype == original.dtype


def test_a_transformers_folder_is_written_back(tmp_path):
    """The added tokens keep their rows and their flags; <pad> follows them."""
    small = SmallMarian()
    folder = small.write_transformers(tmp_path / "original")
    first = len(small.pieces) + 1
    entries = {first: (">>fin<<", True), first + 1: ("<num>", False)}
    added = {n: {"content": k, "special": flag} for n, (k, flag) in entries.items()}
    changed = {
        "tokenizer_config.json": {"added_tokens_decoder": added},
        "config.json": {"vocab_size": first + 2, "decoder_vocab_size": first + 2},
        "generation_config.json": {
            "length_penalty": 0.75,
            "bad_words_ids": [[first - 1], [small.pieces.index("<unk>")]],
        },
    }
    for name, values in changed.items():
        values = json.loads((folder / name).read_text()) | values
        (folder / name).write_text(json.dumps(values))
    arrays = read_safetensors(folder / "model.safetensors")
    table, bias = arrays["model.shared.weight"], arrays["final_logits_bias"]
    arrays["model.shared.weight"] = np.pad(table, ((0, 2), (0, 0)), constant_values=7)
    arrays["final_logits_bias"] = np.pad(bias, ((0, 0), (0, 2)), constant_values=3)
    write_safetensors(arrays, folder / "model.safetensors")

    source = read(folder, "transformers")
    again = export(source, tmp_path / "export", "transformers")
    assert again.hparams == source.hparams
    assert (again.hparams.alpha, again.hparams.allow_unknown) == (0.75, False)
    ids = json.loads((tmp_path / "export" / "vocab.json").read_text())
    original_ids = json.loads((folder / "vocab.json").read_text())
    original_ids |= {token: int(n) for n, (token, _) in entries.items()}
    assert [*ids][:2] == ["</s>", "<unk>"] and ids["<pad>"] == len(ids) - 1
    both = ids, original_ids
    assert_same_arrays(
        read_safetensors(tmp_path / "export" / "model.safetensors"),
        arrays,
        {"model.shared.weight": both, "final_logits_bias": both},
    )
    settings = json.loads((tmp_path / "export" / "tokenizer_config.json").read_text())
    assert settings["additional_special_tokens"] == [">>fin<<"]
    assert (settings["source_lang"], settings["target_lang"]) == ("en", "fi")


def test_marians_own_vocabularies_are_written_back(tmp_path):
    small = SmallMarian()
    model = piece_model(40, user_defined_symbols=[">>deu<<"])
    size = 40
    small.arrays["Wemb"] = np.random.default_rng(1).normal(size=(size, 8)).astype("f4")
    small.arrays["decoder_ff_logit_out_b"] = np.arange(size, dtype="f4")[np.newaxis]
    small.decoder["vocabs"] = ["vocab.spm", "vocab.spm"]
    folder = small.write(tmp_path / "original")
    for file in ("source.spm", "target.spm", "vocab.yml"):
        (folder / file).unlink()
    (folder / "vocab.spm").write_bytes(model)
    source = read(folder)
    again = export(source, tmp_path / "export", "marian")
    assert again.hparams == source.hparams
    arrays = read_npz(tmp_path / "export" / "model.npz")
    np.testing.assert_array_equal(arrays["Wemb"], small.arrays["Wemb"])
    assert (tmp_path / "export" / "vocab.spm").read_bytes() == model


def test_rejects_vocabularies_that_the_programs_lack(tmp_path):
    source = read(SmallMarian().write(tmp_path / "original"))
    pieces = source.tokenizer.pieces
    model = source.tokenizer.piece_model
    search = TranslationOptions().search(source.hparams, source.tokenizer)
    built = source.build()
    for tokenizer, message in (
        (
            MarianTokenizer.from_pieces(None, None, pieces),
            "^the Transformers export does not support pieces of subword-nmt; ",
        ),
        (
            MarianTokenizer.from_pieces(model, model, pieces, source_start=pieces[9]),
            f"^the Transformers export cannot insert {pieces[9]} before every source",
        ),
        (
            tiny.tokenizer(tmp_path),
            "^the Transformers export supports only the vocabulary of an imported "
            "model, not vocab.model; export a saved_model",
        ),
    ):
        with pytest.raises(UserError, match=message):
            write_transformers(
                built, tokenizer, source.hparams, search, ("en", "fi"), tmp_path
            )


@pytest.mark.medium
@pytest.mark.parametrize(
    ("case", "program"),
    [
        ("a_opus", "transformers"),
        ("c_gelu_separate", "transformers"),
        ("c_gelu_separate", "marian"),
        ("d_prenorm_untied", "marian"),
    ],
)
def test_folders_of_the_programs_are_written_back(case, program, tmp_path, shared_dir):
    if not (shared_dir / "marian").is_dir():
        pytest.skip("Marian's reference data are missing")
    original = shared_dir / "marian" / case / program
    source, folder = read(original, program), tmp_path / "export"
    assert export(source, folder, program).hparams == source.hparams
    if program == "marian":
        ids, originals = (
            [read_ids(path / f"{side}.vocab.yml") for side in names]
            for path, names in (
                (folder, ("source", "target")),
                (original, ("src", "trg")),
            )
        )
        source_ids, target_ids = zip(ids, originals, strict=True)
        arrays = read_npz(folder / "model.npz")
        expected = read_npz(original / "model.npz")
        options, theirs = (
            yaml.safe_load(each.pop(OPTIONS).tobytes().rstrip(b"\0"))
            for each in (arrays, expected)
        )
        del options["version"], theirs["version"]
        assert options.pop("transformer-depth-scaling") is False
        assert options == theirs
        names = "encoder_Wemb", "decoder_Wemb", "decoder_ff_logit_out_Wt"
        bias = "decoder_ff_logit_out_b"
    else:
        files = ["vocab.json", "target_vocab.json"]
        if not (original / files[1]).exists():
            files[1] = files[0]
        source_ids, target_ids = (
            [json.loads((path / file).read_text()) for path in (folder, original)]
            for file in files
        )
        arrays = read_safetensors(folder / "model.safetensors")
        expected = read_safetensors(original / "model.safetensors")
        # Transformers computes these tables.
        expected = {k: v for k, v in expected.items() if "positions" not in k}
        configs = [
            json.loads((path / "config.json").read_text())
            | json.loads((path / "generation_config.json").read_text())
            for path in (folder, original)
        ]
        config, theirs = configs
        of_ids = {name for name in config if name.endswith("_id")}
        for name in config.keys() - of_ids - {"length_penalty"}:
            assert config[name] == theirs[name], name
        assert config["length_penalty"] == 1
        assert config["pad_token_id"] == target_ids[0]["<pad>"]
        assert config["eos_token_id"] == target_ids[0]["</s>"]
        encoder, decoder = "model.encoder", "model.decoder"
        names = f"{encoder}.embed_tokens.weight", f"{decoder}.embed_tokens.weight"
        names += ("model.shared.weight",)
        bias = "final_logits_bias"
    of_vocabulary = dict.fromkeys(names, target_ids) | {bias: target_ids}
    of_vocabulary[names[0]] = source_ids
    assert_same_arrays(arrays, expected, of_vocabulary)
