"""Folders of Marian's and Transformers' that are damaged, incomplete or mixed up.

Each is refused in one line and leaves nothing behind, or means what it meant before.
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

from t2t_repro.interop.import_model import import_model
from t2t_repro.interop.marian.importer import read
from t2t_repro.system.errors import UserError
from tests.interop.marian.small_marian import OPTIONS, SmallMarian

KINDS = ("marian", "transformers", "torch")
WEIGHTS = ("model.npz", "model.safetensors", "pytorch_model.bin")


def written(kind: str, small: SmallMarian, folder: Path) -> Path:
    if kind == "marian":
        return small.write(folder)
    if kind == "torch":
        pytest.importorskip("torch")
    return small.write_transformers(folder, with_torch=kind == "torch")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Two models, the second with fewer pieces."""
    return SmallMarian(), SmallMarian(size=36)


@pytest.fixture(params=KINDS)
def folder(request, models, tmp_path):
    """A folder of each kind, which a test may damage."""
    return written(request.param, models[0], tmp_path / "folder")


def refused(folder: Path, **flags: str) -> str:
    """Imports, and returns why that is refused; nothing is written."""
    with pytest.raises(UserError) as caught:
        import_model(lambda: read(folder, **flags), folder.with_name("model"))
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    message = str(caught.value)
    assert "\n" not in message and len(message) < 400, message
    return message


def meaning(folder: Path) -> tuple:
    """What is read of a folder, but for its languages; UserError as an import."""
    model = read(folder)
    variables = {name: v.tobytes() for name, v in model.weights.items()}
    pieces, left = model.tokenizer.pieces, model.unused["settings of the search"]
    return model.hparams, variables, pieces, model.pieces_known, left


# Zips may have something behind them; the other two are optional.
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
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused_by_name(folder, damage):
    before = meaning(folder)
    for path in sorted(folder.iterdir()):
        contents, name = path.read_bytes(), path.name
        # What is left of short lines may be settings, too.
        if name == "decoder.yml" and damage.startswith("cut"):
            continue
        path.unlink()
        if DAMAGES[damage] is not None:
            path.write_bytes(DAMAGES[damage](contents))
        if (name, damage) in HARMLESS:
            search = [{}, {"beam_size": 1, "decode_extra_length": 19}]
            changes = search[name == "generation_config.json"]
            wanted = (before[0].replace(**changes), *before[1:])
            assert meaning(folder)[:4] == wanted[:4], name
        else:
            message = refused(folder)
            assert path.stem.partition(".")[0] in message, (name, message)
        path.write_bytes(contents)
    assert meaning(folder) == before


def test_files_of_another_model_are_refused_or_told(folder, models, tmp_path, request):
    kind = request.node.callspec.params["folder"]
    other = written(kind, models[1], tmp_path / "other" / "folder")
    for path in sorted(folder.iterdir()):
        contents = path.read_bytes()
        path.write_bytes((other / path.name).read_bytes())
        if path.suffix == ".spm":
            # The smaller model's pieces are in the other's vocabulary, too.
            known, pieces = meaning(folder)[3][path.stem]
            assert 30 < known <= pieces < 36 + 1
        elif path.name in ("decoder.yml", "tokenizer_config.json"):
            meaning(folder)  # Both models have the same.
        else:
            with pytest.raises(UserError, match=r"(of|to) different models"):
                meaning(folder)
        path.write_bytes(contents)


def test_a_sentencepiece_model_of_other_text_is_refused(folder, models, shared_dir):
    paths = sorted(shared_dir.glob("marian/a_opus/marian/*.spm"))
    if not paths:
        pytest.skip("Marian's vectors are not on this machine")
    for path in paths:
        shutil.copyfile(path, folder / path.name)
        assert re.search(rf" has \d+ of the \d+ pieces of {path.name}", refused(folder))
        (folder / path.name).write_bytes(models[0].spm)


ODD = (
    *(None, -1, 0, 1, 3, 10**9, 10**400, "", "x", "../../x", [], {}, True, False, 1.5),
    *(float("nan"), float("inf"), [1], [[1]], {"a": 1}),
)


def unharmed(folder: Path, path: Path, changed: Iterable[str]) -> int:
    """Writes each text into the file; counts those that are refused in one line."""
    contents, count = path.read_bytes(), 0
    for text in changed:
        path.write_text(text, encoding="utf-8")
        try:
            meaning(folder)
        except UserError as error:
            assert "\n" not in str(error) and str(folder) in str(error)
            count += 1
    path.write_bytes(contents)
    return count


@pytest.mark.parametrize("name", ["config", "generation_config", "tokenizer_config"])
def test_any_value_in_json_is_refused_in_one_line_or_read(models, tmp_path, name):
    folder = written("transformers", models[0], tmp_path / "folder")
    path = folder / f"{name}.json"
    values = json.loads(path.read_text())
    changed = [json.dumps(values | {key: odd}) for key in values for odd in ODD]
    count = unharmed(folder, path, changed)
    assert count > (len(changed) / 2 if name != "tokenizer_config" else -1)
    # Of a name that comes twice the program takes the second.
    twice = path.read_text()[:-1] + ', "source_lang": 1, "source_lang": 2}'
    assert unharmed(folder, path, [twice, "[]", "1", "[" * 100_000]) == 4


def test_any_value_in_yaml_is_refused_in_one_line_or_read(models, tmp_path):
    folder = written("marian", models[0], tmp_path / "folder")
    values = yaml.safe_load((folder / "decoder.yml").read_text())
    changed = [yaml.safe_dump(values | {key: odd}) for key in values for odd in ODD]
    assert unharmed(folder, folder / "decoder.yml", changed) > len(changed) / 2
    texts = ("{: [", "[]", "x", "a: {b: c}", "a: b\na: b", "? [a]\n: b", "[" * 10**6)
    ids = ("no: -1", "no: 1.0", f"no: {'1' * 5000}", "no: [1]")
    for file in ("decoder.yml", "vocab.yml"):
        text = (folder / file).read_text(encoding="utf-8")
        more = [text + line for line in ("mini-batch: 1\n</s>: 9\nmini-batch: 1\n",)]
        assert unharmed(folder, folder / file, [*texts, *more]) == len(texts) + 1
    text = (folder / "vocab.yml").read_text(encoding="utf-8")
    changed = [text.replace("no: 1\n", f"{each}\n") for each in ids]
    assert unharmed(folder, folder / "vocab.yml", changed) == len(ids)


def test_references_do_not_grow_to_gigabytes(models, tmp_path):
    folder = written("marian", models[0], tmp_path / "folder")
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    for one, other in zip("bcdefghijkl", "abcdefghijk", strict=True):
        lines.append(f"{one}: &{one} [{', '.join([f'*{other}'] * 9)}]")
    for end in ("models: *l", "vocabs: *l", "beam-size: *l"):
        (folder / "decoder.yml").write_text("\n".join([*lines, end]))
        assert "lines of the form" in refused(folder)


def test_any_value_of_an_option_is_refused_in_one_line_or_read(tmp_path):
    small, count = SmallMarian(), 0
    for name in OPTIONS:
        for odd in ODD:
            small.options = OPTIONS | {name: odd}
            folder = small.write(tmp_path / "folder")
            try:
                meaning(folder)
            except UserError as error:
                assert "\n" not in str(error) and str(folder) in str(error)
                count += 1
            shutil.rmtree(folder)
    assert count > len(OPTIONS) * len(ODD) / 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("words", "change"),
    [
        ("has the shape", lambda array: array.T),
        ("has the shape", lambda array: array[None]),
        ("has the shape", lambda array: array[:0]),
        ("holds infinity or NaN", lambda array: array * np.float32("nan")),
        ("holds infinity or NaN", lambda array: array + np.float32("inf")),
    ],
)
def test_weights_of_other_shapes_or_of_no_numbers(tmp_path, kind, words, change):
    small = SmallMarian()
    small.arrays["encoder_l1_ffn_W1"] = change(small.arrays["encoder_l1_ffn_W1"])
    message = refused(written(kind, small, tmp_path / "folder"))
    assert words in message and any(name in message for name in WEIGHTS)


def test_heads_divide_the_channels(tmp_path):
    small = SmallMarian()
    small.options["transformer-heads"] = 3
    assert "3 heads do not divide 8" in refused(small.write(tmp_path / "folder"))


def test_an_npz_that_is_made_up(tmp_path):
    folder = SmallMarian().write(tmp_path / "folder")
    path = folder / "model.npz"
    zeros = {"a": np.zeros(10**7, np.float32)}
    np.savez_compressed(path, **zeros)
    assert path.stat().st_size < 10**5
    assert "no npz of numbers" in refused(folder)
    noise = np.random.default_rng(1).integers(0, 5, 10**5).astype(np.float32)
    np.savez_compressed(path, a=noise)
    contents = bytearray(path.read_bytes())
    contents[1000:1010] = bytes(10)
    path.write_bytes(contents)
    assert "no npz of numbers" in refused(folder)
    huge = b"\x93NUMPY\x01\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (%d,)}"
    for count in (2**40, 2**62, 2**80):
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("a.npy", (huge % count).ljust(127) + b"\n")
        assert "no npz of numbers" in refused(folder)
    with zipfile.ZipFile(path, "w") as file, pytest.warns(UserWarning, match="Dupl"):
        for _ in range(2):
            file.writestr("a.npy", b"")
    assert "no npz of numbers" in refused(folder)


# What a flag says against the files


def test_a_flag_does_not_contradict_the_activation(tmp_path):
    small = SmallMarian()
    folder = small.write(tmp_path / "folder")
    message = refused(folder, activation="gelu")
    assert "transformer-ffn-activation: swish, but --activation gelu" in message
    shutil.rmtree(folder)
    small.options["transformer-ffn-activation"] = "gelu"
    folder = small.write(tmp_path / "folder")
    assert "gelu, but --activation relu" in refused(folder, activation="relu")
    told = {}
    for activation in ("gelu", "gelu_sigmoid"):
        model = read(folder, activation=activation)
        assert model.hparams.activation == activation
        told[activation] = model.unused.get("the GELU of its version of Marian")
    assert told == {"gelu": None, "gelu_sigmoid": ["gelu"]}
