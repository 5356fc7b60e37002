"""Tests of importing damaged, incomplete or mixed folders of Marian and Transformers.

The import either raises a one-line UserError and writes nothing, or the damage does
not affect the result.
"""

import json
import re
import shutil
import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
import yaml

from t2t_repro.interop.formats.safetensors import read_safetensors
from t2t_repro.interop.import_model import import_model
from t2t_repro.interop.marian.importer import read
from t2t_repro.system.errors import UserError
from tests.interop.marian.small_marian import OPTIONS, SmallMarian, safetensors

KINDS = ("marian", "transformers", "torch")
WEIGHTS = ("model.npz", "model.safetensors", "pytorch_model.bin")


def write_folder(kind: str, small: SmallMarian, folder: Path) -> Path:
    if kind == "marian":
        return small.write(folder)
    if kind == "torch":
        pytest.importorskip("torch")
    return small.write_transformers(folder, with_torch=kind == "torch")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Returns two models, of which the second has fewer pieces."""
    return SmallMarian(), SmallMarian(size=36)


@pytest.fixture(params=KINDS)
def folder(request, models, tmp_path):
    """Returns a folder of each kind that a test may change."""
    return write_folder(request.param, models[0], tmp_path / "folder")


def import_error(folder: Path, **flags: str) -> str:
    """Returns the message of a failing import and checks that nothing is written."""
    with pytest.raises(UserError) as error:
        import_model(lambda: read(folder, **flags), folder.with_name("model"))
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    message = str(error.value)
    assert "\n" not in message and len(message) < 400, message
    return message


def contents_of(folder: Path) -> tuple:
    """Reads a folder; returns everything that the import uses except the languages."""
    model = read(folder)
    variables = {name: v.tobytes() for name, v in model.weights.items()}
    pieces, unused = model.tokenizer.pieces, model.unused["settings of the search"]
    return model.hparams, variables, pieces, model.pieces_known, unused


# Zip readers ignore trailing bytes, and two of the JSON files are optional.
HARMLESS = {
    ("model.npz", "more"),
    ("pytorch_model.bin", "more"),
    ("generation_config.json", "missing"),
    ("tokenizer_config.json", "missing"),
}
DAMAGES = {
    "missing": None,
    "empty": lambda contents: b"",
    "cut at a tenth": lambda contents: contents[: len(contents) // 10],
    "cut in the middle": lambda contents: contents[: len(contents) // 2],
    "cut before the end": lambda contents: contents[:-2],
    "zeros": lambda contents: bytes(len(contents)),
    "noise": lambda contents: np.random.default_rng(5).bytes(len(contents)),
    "text": lambda contents: b"<html>404: Not Found</html>\n",
    "more": lambda contents: contents + b"\n{[\0",
    "pointer": lambda contents: b"version https://git-lfs.github.com/spec/v1\n",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_rejects_a_damaged_file_by_name(folder, damage):
    before = contents_of(folder)
    for path in sorted(folder.iterdir()):
        contents, name = path.read_bytes(), path.name
        # A truncated decoder.yml can still be valid.
        if name == "decoder.yml" and damage.startswith("cut"):
            continue
        path.unlink()
        if DAMAGES[damage] is not None:
            path.write_bytes(DAMAGES[damage](contents))
        if (name, damage) in HARMLESS:
            search = [{}, {"beam_size": 1, "decode_extra_length": 19}]
            changes = search[name == "generation_config.json"]
            expected = (before[0].replace(**changes), *before[1:])
            assert contents_of(folder)[:4] == expected[:4], name
        else:
            message = import_error(folder)
            assert path.stem.partition(".")[0] in message, (name, message)
            assert ("is a Git LFS pointer" in message) is (damage == "pointer")
        path.write_bytes(contents)
    assert contents_of(folder) == before


def test_a_softmax_table_that_is_tied_to_another_is_not_used(models, tmp_path):
    folder = write_folder("transformers", models[0], tmp_path / "folder")
    before = read(folder)
    path = folder / "model.safetensors"
    arrays = read_safetensors(path)
    head = np.ones_like(arrays["model.shared.weight"])
    path.write_bytes(safetensors(arrays | {"lm_head.weight": head}))
    after = read(folder)
    kind = "softmax table, which config.json ties to model.shared.weight"
    assert after.unused[kind] == ["lm_head.weight"]
    assert not after.every_array
    for name, value in before.weights.items():
        np.testing.assert_array_equal(after.weights[name], value)


def test_names_unused_lists(models, tmp_path):
    folder = write_folder("marian", models[0], tmp_path / "marian")
    with (folder / "decoder.yml").open("a", encoding="utf-8") as file:
        file.write("shortlist:\n- lex.s2t.bin\n- 50\n")
    assert "shortlist" in read(folder).unused["settings of the search"]


def test_rejects_files_of_a_different_model(folder, models, tmp_path, request):
    kind = request.node.callspec.params["folder"]
    other = write_folder(kind, models[1], tmp_path / "other" / "folder")
    for path in sorted(folder.iterdir()):
        contents = path.read_bytes()
        path.write_bytes((other / path.name).read_bytes())
        if path.suffix == ".spm":
            # The vocabulary also contains the pieces of the smaller model.
            known, pieces = contents_of(folder)[3][path.stem]
            assert 30 < known <= pieces < 36 + 1
        elif path.name in ("decoder.yml", "tokenizer_config.json"):
            contents_of(folder)  # This file is equal in both models.
        else:
            with pytest.raises(UserError, match=r"(of|to) different models"):
                contents_of(folder)
        path.write_bytes(contents)


def test_rejects_a_sentencepiece_model_of_different_text(folder, models, shared_dir):
    paths = sorted(shared_dir.glob("marian/a_opus/marian/*.spm"))
    if not paths:
        pytest.skip("Marian's reference data are missing")
    for path in paths:
        shutil.copyfile(path, folder / path.name)
        message = import_error(folder)
        assert re.search(rf"contains \d+ of the \d+ pieces of {path.name}", message)
        (folder / path.name).write_bytes(models[0].spm)


ODD = (
    *(None, -1, 0, 1, 3, 10**9, 10**400, "", "x", "../../x", [], {}, True, False, 1.5),
    *(float("nan"), float("inf"), [1], [[1]], {"a": 1}),
)


def count_rejected(folder: Path, path: Path, texts: Iterable[str]) -> int:
    """Writes each text into the file and counts the one-line UserErrors."""
    contents, count = path.read_bytes(), 0
    for text in texts:
        path.write_text(text, encoding="utf-8")
        try:
            contents_of(folder)
        except UserError as error:
            assert "\n" not in str(error) and str(folder) in str(error)
            count += 1
    path.write_bytes(contents)
    return count


@pytest.mark.parametrize("name", ["config", "generation_config", "tokenizer_config"])
def test_reads_or_rejects_any_value_in_json(models, tmp_path, name):
    folder = write_folder("transformers", models[0], tmp_path / "folder")
    path = folder / f"{name}.json"
    values = json.loads(path.read_text())
    changed = [json.dumps(values | {key: odd}) for key in values for odd in ODD]
    count = count_rejected(folder, path, changed)
    assert count > (len(changed) / 2 if name != "tokenizer_config" else -1)
    # Transformers would use the second value of a duplicate name.
    twice = path.read_text()[:-1] + ', "source_lang": 1, "source_lang": 2}'
    half = path.read_text()[:-1] + ', "x": "\\ud800"}'
    assert count_rejected(folder, path, [twice, half, "[]", "1", "[" * 100_000]) == 5


def test_reads_or_rejects_any_value_in_yaml(models, tmp_path):
    folder = write_folder("marian", models[0], tmp_path / "folder")
    values = yaml.safe_load((folder / "decoder.yml").read_text())
    changed = [yaml.safe_dump(values | {key: odd}) for key in values for odd in ODD]
    assert count_rejected(folder, folder / "decoder.yml", changed) > len(changed) / 2
    texts = ("{: [", "[]", "x", "a: {b: c}", "a: b\na: b", "? [a]\n: b", "[" * 10**6)
    ids = ("no: -1", "no: 1.0", f"no: {'1' * 5000}", "no: [1]")
    for file in ("decoder.yml", "vocab.yml"):
        text = (folder / file).read_text(encoding="utf-8")
        more = [text + line for line in ("mini-batch: 1\n</s>: 9\nmini-batch: 1\n",)]
        assert count_rejected(folder, folder / file, [*texts, *more]) == len(texts) + 1
    text = (folder / "vocab.yml").read_text(encoding="utf-8")
    changed = [text.replace("no: 1\n", f"{each}\n") for each in ids]
    assert count_rejected(folder, folder / "vocab.yml", changed) == len(ids)


def test_rejects_yaml_references_that_would_expand_to_gigabytes(models, tmp_path):
    folder = write_folder("marian", models[0], tmp_path / "folder")
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    for one, other in zip("bcdefghijkl", "abcdefghijk", strict=True):
        lines.append(f"{one}: &{one} [{', '.join([f'*{other}'] * 9)}]")
    for end in ("models: *l", "vocabs: *l", "beam-size: *l"):
        (folder / "decoder.yml").write_text("\n".join([*lines, end]))
        assert "lines of the form" in import_error(folder)


def test_reads_or_rejects_any_value_of_an_option(tmp_path):
    small, count = SmallMarian(), 0
    for name in OPTIONS:
        for odd in ODD:
            small.options = OPTIONS | {name: odd}
            folder = small.write(tmp_path / "folder")
            try:
                contents_of(folder)
            except UserError as error:
                assert "\n" not in str(error) and str(folder) in str(error)
                count += 1
            shutil.rmtree(folder)
    assert count > len(OPTIONS) * len(ODD) / 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("message", "change"),
    [
        ("has the shape", lambda array: array.T),
        ("has the shape", lambda array: array[None]),
        ("has the shape", lambda array: array[:0]),
        ("contains infinity or NaN", lambda array: array * np.float32("nan")),
        ("contains infinity or NaN", lambda array: array + np.float32("inf")),
    ],
)
def test_rejects_weights_of_wrong_shapes_or_with_nan(tmp_path, kind, message, change):
    small = SmallMarian()
    small.arrays["encoder_l1_ffn_W1"] = change(small.arrays["encoder_l1_ffn_W1"])
    error = import_error(write_folder(kind, small, tmp_path / "folder"))
    assert message in error and any(name in error for name in WEIGHTS)


def test_rejects_a_width_that_is_not_a_multiple_of_the_heads(tmp_path):
    small = SmallMarian()
    small.options["transformer-heads"] = 3
    message = import_error(small.write(tmp_path / "folder"))
    assert "d_model=8 is not a multiple of num_heads=3" in message


def test_rejects_a_manipulated_npz(tmp_path):
    folder = SmallMarian().write(tmp_path / "folder")
    path = folder / "model.npz"
    zeros = {"a": np.zeros(10**7, np.float32)}
    np.savez_compressed(path, **zeros)
    assert path.stat().st_size < 10**5
    assert "not an npz file" in import_error(folder)
    noise = np.random.default_rng(1).integers(0, 5, 10**5).astype(np.float32)
    np.savez_compressed(path, a=noise)
    contents = bytearray(path.read_bytes())
    contents[1000:1010] = bytes(10)
    path.write_bytes(contents)
    assert "not an npz file" in import_error(folder)
    huge = b"\x93NUMPY\x01\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (%d,)}"
    for count in (2**40, 2**62, 2**80):
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("a.npy", (huge % count).ljust(127) + b"\n")
        assert "not an npz file" in import_error(folder)
    with zipfile.ZipFile(path, "w") as file, pytest.warns(UserWarning, match="Dupl"):
        for _ in range(2):
            file.writestr("a.npy", b"")
    assert "not an npz file" in import_error(folder)
    # NumPy stores objects as pickles, which are not loaded.
    np.savez(path, a=np.array([{}], object))
    assert "damaged" in import_error(folder)


def test_activation_flag_only_selects_the_form_of_gelu(tmp_path):
    small = SmallMarian()
    folder = small.write(tmp_path / "folder")
    message = import_error(folder, activation="gelu")
    assert "transformer-ffn-activation: swish, but --activation gelu" in message
    shutil.rmtree(folder)
    small.options["transformer-ffn-activation"] = "gelu"
    folder = small.write(tmp_path / "folder")
    assert "gelu, but --activation relu" in import_error(folder, activation="relu")
    unused = {}
    for activation in ("gelu", "gelu_sigmoid"):
        model = read(folder, activation=activation)
        assert model.hparams.activation == activation
        unused[activation] = model.unused.get("the GELU of its version of Marian")
    assert unused == {"gelu": None, "gelu_sigmoid": ["gelu"]}
