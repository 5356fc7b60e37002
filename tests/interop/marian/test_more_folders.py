"""Folders with added tokens, weights in several files, or Marian's own vocabularies."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from t2t_repro.interop.formats.safetensors import read_safetensors
from t2t_repro.interop.formats.torch_file import read_torch
from t2t_repro.interop.marian.importer import read
from t2t_repro.models.variables import named_variables
from t2t_repro.system.errors import UserError
from tests import tiny
from tests.interop.marian.small_marian import SmallMarian, safetensors


@pytest.fixture(scope="module")
def small():
    return SmallMarian()


def split_weights(path: Path, arrays: dict, write) -> Path:
    """Replaces a weight file by two files and their index, whose path is returned."""
    path.unlink()
    names, files = sorted(arrays), {}
    for number in (1, 2):
        part = f"{path.stem}-0000{number}-of-00002{path.suffix}"
        files |= dict.fromkeys(names[number - 1 :: 2], part)
        write(
            {name: arrays[name] for name in names[number - 1 :: 2]}, path.parent / part
        )
    index = path.with_name(f"{path.name}.index.json")
    index.write_text(json.dumps({"metadata": {}, "weight_map": files}))
    return index


def write_safetensors(arrays, path):
    path.write_bytes(safetensors(arrays))


def assert_same_weights(model, other):
    assert model.weights.keys() == other.weights.keys()
    for name, value in other.weights.items():
        np.testing.assert_array_equal(model.weights[name], value)


def test_weights_in_several_files(small, tmp_path):
    whole = read(small.write_transformers(tmp_path / "whole"))
    folder = small.write_transformers(tmp_path / "parts")
    path = folder / "model.safetensors"
    index = split_weights(path, read_safetensors(path), write_safetensors)
    assert_same_weights(read(folder), whole)
    text = index.read_text()
    for part in (1, 2):
        name = f"model-0000{part}-of-00002.safetensors"
        for wrong in (f"../{name}", "", f"x/{name}"):
            index.write_text(text.replace(name, wrong, 1))
            with pytest.raises(UserError, match=r"weight_map must give|different arr"):
                read(folder)
        index.write_text(text)
    for wrong in ("{}", '{"weight_map": {}}', '{"weight_map": {"a": 1}}'):
        index.write_text(wrong)
        with pytest.raises(UserError, match="weight_map must give"):
            read(folder)
    index.write_text(text)
    (folder / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(UserError, match=r"model-00002-of-00002.* download it into"):
        read(folder)


@pytest.mark.parametrize("dtype", [tf.bfloat16, tf.float16])
def test_half_precision_weights_in_several_files(small, tmp_path, dtype):
    """Transformers 5 saves a model that was loaded in half precision so."""
    whole = read(small.write_transformers(tmp_path / "whole"))
    folder = small.write_transformers(tmp_path / "half")
    path = folder / "model.safetensors"
    half = {
        name: array.astype(dtype.as_numpy_dtype)
        for name, array in read_safetensors(path).items()
    }
    split_weights(path, half, write_safetensors)
    config = folder / "config.json"
    values = json.loads(config.read_text()) | {"dtype": dtype.name}
    config.write_text(json.dumps(values | {"transformers_version": "5.0.0"}))
    variables = named_variables(read(folder).build())
    for name, value in whole.weights.items():
        rounded = value.astype(dtype.as_numpy_dtype).astype(np.float32)
        rounded[value == -1e4] = -1e4  # The bias of PAD is not read from the file.
        np.testing.assert_array_equal(variables[name].numpy(), rounded)


def test_pytorch_weights_in_several_files(small, tmp_path):
    torch = pytest.importorskip("torch")

    def write(arrays, path):
        tensors = {k: torch.tensor(np.ascontiguousarray(v)) for k, v in arrays.items()}
        torch.save(tensors, path)

    whole = read(small.write_transformers(tmp_path / "whole", with_torch=True))
    folder = small.write_transformers(tmp_path / "parts", with_torch=True)
    path = folder / "pytorch_model.bin"
    split_weights(path, read_torch(path), write)
    assert_same_weights(read(folder), whole)


def test_names_the_missing_file_of_subword_nmt(small, tmp_path):
    folder = small.write(tmp_path / "model")
    (folder / "source.spm").unlink()
    (folder / "target.bpe").touch()
    with pytest.raises(UserError, match=r"source\.bpe does not exist, but target\.bpe"):
        read(folder)


@pytest.mark.parametrize("version", [4, 5])
def test_added_tokens_have_the_rows_after_the_vocabulary(small, tmp_path, version):
    folder = small.write_transformers(tmp_path / "folder")
    first = len(small.pieces) + 1
    added = {"<num>": first + 1, ">>fin<<": first, "</s>": small.pieces.index("</s>")}
    if version == 4:
        (folder / "added_tokens.json").write_text(json.dumps(added))
    else:
        path = folder / "tokenizer_config.json"
        entries = {n: {"content": k, "special": k[0] == ">"} for k, n in added.items()}
        entries = {"added_tokens_decoder": entries}
        path.write_text(json.dumps(json.loads(path.read_text()) | entries))
    path = folder / "model.safetensors"
    arrays = read_safetensors(path)
    new = np.float32([[1] * 8, [2] * 8])
    table = np.concatenate([arrays["model.shared.weight"], new])
    bias = np.pad(arrays["final_logits_bias"], ((0, 0), (0, 2)))
    changed = {"model.shared.weight": table, "final_logits_bias": bias}
    write_safetensors(arrays | changed, path)
    path = folder / "config.json"
    sizes = dict.fromkeys(("vocab_size", "decoder_vocab_size"), len(table))
    path.write_text(json.dumps(json.loads(path.read_text()) | sizes))
    model = read(folder)
    ids = model.tokenizer.encode(tf.constant([">>fin<< no<num>no </s>"]))
    rows = [*ids.numpy()[0]]
    names = [model.tokenizer.pieces[n] for n in rows]
    assert names[0] == ">>fin<<" and names.count("<num>") == 1
    assert names.index("</s>") == len(names) - 1  # the other one is plain text
    for name, value in ((">>fin<<", 1), ("<num>", 2)):
        row = model.weights["embedding/table"][rows[names.index(name)]]
        assert row.tolist() == [value] * 8
    shown = ">>fin<< no" if version == 4 else "no"
    text = model.tokenizer.decode(ids[:, :-1]).numpy()[0].decode()
    assert text.startswith(f"{shown} <num> no")
    (folder / "target_vocab.json").write_text((folder / "vocab.json").read_text())
    with pytest.raises(UserError, match=r"models without target_vocab.json|rows"):
        read(folder)


@pytest.mark.parametrize("number", [3, 999, "three"])
def test_names_an_added_token_without_a_row_of_its_own(small, tmp_path, number):
    folder = small.write_transformers(tmp_path / "folder")
    (folder / "added_tokens.json").write_text(json.dumps({"<num>": number}))
    with pytest.raises(
        UserError, match=f"the added token '<num>' has the id '?{number}"
    ):
        read(folder)


def piece_model(size: int, **options) -> bytes:
    """Trains a SentencePiece model with options of marian-train."""
    model = io.BytesIO()
    lines = [side for pair in tiny.pairs("train") for side in pair]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=size,
        hard_vocab_limit=False,
        minloglevel=2,
        **({"bos_id": -1, "eos_id": 0, "unk_id": 1} | options),
    )
    return model.getvalue()


def test_marians_own_vocabularies_keep_sentencepieces_ids(tmp_path):
    source = piece_model(40, user_defined_symbols=[">>deu<<"])
    target = piece_model(
        300, byte_fallback=True, bos_id=1, eos_id=3, unk_id=0, pad_id=2
    )
    for number, models in enumerate(
        [(source, source), (target, target), (source, target)]
    ):
        small = SmallMarian()
        libraries = [
            sentencepiece.SentencePieceProcessor(model_proto=m) for m in models
        ]
        generator = np.random.default_rng(number)
        tables = [generator.normal(size=(len(each), 8)) for each in libraries]
        small.arrays["decoder_ff_logit_out_b"] = np.zeros(
            (1, len(tables[1])), "float32"
        )
        del small.arrays["Wemb"]
        names = ("encoder_Wemb", "decoder_Wemb")
        if models[0] == models[1]:
            names, tables = ("Wemb",), tables[:1] * 2
        for name, table in zip(names, tables, strict=False):
            small.arrays[name] = table.astype(np.float32)
        files = [f"vocab.{len(model)}.spm" for model in models]
        small.decoder["vocabs"] = [f"train/{file}" for file in files]
        folder = small.write(tmp_path / f"folder{number}")
        for file in ("source.spm", "target.spm", "vocab.yml"):
            (folder / file).unlink()
        for file, model in zip(files, models, strict=True):
            (folder / file).write_bytes(model)
        read_model = read(folder)
        weights = read_model.weights
        ours = [weights.get("embedding/table", weights.get("input_embedding/table"))]
        ours.append(weights.get("embedding/table", weights.get("softmax/table")))
        texts = [tiny.pairs("train")[0][0], ">>deu<< a", "a >>deu<<", "\u732b </s>", ""]
        for side, library, table, our_table in zip(
            (read_model.tokenizer, read_model.tokenizer.target),
            *(libraries, tables, ours),
            strict=True,
        ):
            ids = side.encode(tf.constant(texts))
            for row, text, decoded in zip(
                ids.to_list(), texts, side.decode(ids).numpy(), strict=True
            ):
                theirs = [*library.encode(text), library.eos_id()]
                np.testing.assert_array_equal(
                    our_table[row], table.astype(np.float32)[theirs]
                )
                assert decoded.decode() == library.decode(theirs[:-1]).strip()
    (folder / files[0]).write_bytes(piece_model(40, eos_id=-1))
    with pytest.raises(UserError, match="lacks a piece for the end of"):
        read(folder)
