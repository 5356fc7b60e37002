"""Small valid files for every reader of untrusted files, divided into parts."""

import bz2
import gzip
import hashlib
import json
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import zstandard

from t2t_repro import hparams
from t2t_repro.data.manifest import Origin
from t2t_repro.data.shards import write_shards
from t2t_repro.formats import documents
from t2t_repro.interop.formats.npz import read_npz
from t2t_repro.interop.formats.object_graph import OBJECTS
from t2t_repro.interop.marian.options import OPTIONS
from t2t_repro.interop.tensor2tensor import sets as t2t_sets
from t2t_repro.runs import checkpoints
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.runs.run_metadata import RunMetadata
from t2t_repro.runs.tensor_file import TensorFile, write_tensors
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.marian_tokenizer import MarianTokenizer
from t2t_repro.tokenizers.separate_tokenizer import join_vocabularies
from t2t_repro.tokenizers.vocabulary import build_vocabulary
from tests import golden, tiny
from tests.formats import samples
from tests.interop.marian.small_marian import SmallMarian, safetensors
from tests.interop.opennmt import vectors
from tests.interop.tensor2tensor import run as t2t_run

ARRAYS: dict[str, Any] = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": np.ones(2, "f4"),
}
# The pickle of {"a": a tensor (2, 3) of the storage "0"}, as PyTorch writes it.
_PICKLE = (
    b"\x80\x02}q\0(X\x01\0\0\0actorch._utils\n_rebuild_tensor_v2\nq\x01((X\x07\0\0\0"
    b"storagectorch\nFloatStorage\nX\x01\0\0\x000X\x03\0\0\0cpuK\x06tQK\0K\x02K\x03\x86"
    b"K\x03K\x01\x86\x89ccollections\nOrderedDict\n)RtRX\x01\0\0\0bh\x01((X\x07\0\0\0"
    b"storagectorch\nHalfStorage\nX\x01\0\0\x001X\x03\0\0\0cpuK\x02tQK\0K\x02\x85K\x01"
    b"\x85\x89h\0tRu."
)


class Part(NamedTuple):
    """Part of the files that an input replaces.

    Attributes:
        path: Path that the reader gets: the file, or the folder of all files.
        contents: Valid contents.
        write: Function that writes other contents in their place.
    """

    path: Path
    contents: bytes
    write: Callable[[bytes], object]


def _files(folder: Path, *patterns: str, whole: bool = True) -> list[Part]:
    """Returns files as parts; their readers get the folder if `whole`."""
    paths = [path for pattern in patterns for path in sorted(folder.glob(pattern))]
    return [
        Part(folder if whole else path, path.read_bytes(), path.write_bytes)
        for path in paths
    ]


def _members(path: Path, whole: Path | None = None) -> list[Part]:
    """Returns the file and each member of a zip archive as parts."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}

    def part(name: str) -> Part:
        def write(contents: bytes) -> None:
            with zipfile.ZipFile(path, "w") as archive:
                for member, each in (members | {name: contents}).items():
                    archive.writestr(member, each)

        return Part(whole or path, members[name], write)

    return [
        Part(whole or path, path.read_bytes(), path.write_bytes),
        *map(part, members),
    ]


def write_torch(folder: Path) -> list[Part]:
    path = folder / "pytorch_model.bin"
    with zipfile.ZipFile(path, "w") as archive:
        for name, contents in {
            "data.pkl": _PICKLE,
            "byteorder": b"little",
            "data/0": bytes(24),
            "data/1": bytes(4),
        }.items():
            archive.writestr(f"archive/{name}", contents)
    return _members(path)


def write_safetensors(folder: Path) -> list[Part]:
    path, contents = folder / "model.safetensors", safetensors(ARRAYS)
    path.write_bytes(contents)
    size = 8 + int.from_bytes(contents[:8], "little")

    def write(header: bytes) -> None:
        length = len(header).to_bytes(8, "little")
        path.write_bytes(length + header + contents[size:])

    return [*_files(folder, "*", whole=False), Part(path, contents[8:size], write)]


def write_npz(folder: Path) -> list[Part]:
    np.savez(folder / "model.npz", **ARRAYS)
    return _members(folder / "model.npz")


def write_marian(folder: Path) -> list[Part]:
    path = SmallMarian().write(folder / "model")
    arrays: dict[str, Any] = read_npz(path / "model.npz")

    def write(contents: bytes) -> None:
        changed = arrays | {OPTIONS: np.frombuffer(contents, np.int8)}
        np.savez(path / "model.npz", **changed)

    options = Part(path, arrays[OPTIONS].tobytes(), write)
    return [*_files(path, "*.yml"), options]


def write_transformers(folder: Path) -> list[Part]:
    path = SmallMarian().write_transformers(folder / "model")
    return _files(path, "*.json", "*.safetensors")


def _t2t_variables() -> dict[str, np.ndarray]:
    arrays = golden.load(vectors.DATA / "t2t_v1.0.14.npz").items()
    start = "variables/"
    return {k.removeprefix(start): v for k, v in arrays if k.startswith(start)}


def write_tensor2tensor(folder: Path) -> list[Part]:
    prefix = folder / "model.ckpt-1"
    write_tensors(prefix, _t2t_variables() | {"global_step": np.int64(1)})
    t2t_run.write_vocabulary(folder / "vocab.subwords", 18)
    sizes = {"hidden_size": 8, "filter_size": 12, "num_hidden_layers": 1}
    values = t2t_sets.load("transformer_base_v1") | sizes | {"num_heads": 2}
    (folder / "hparams.json").write_text(json.dumps(values))
    (folder / "checkpoint").write_text(f'model_checkpoint_path: "{prefix}"\n')
    return _files(folder, "*")


def write_t2t_hparams(folder: Path) -> list[Part]:
    write_tensor2tensor(folder)
    return _files(folder, "hparams.json", whole=False)


def write_t2t_names(folder: Path) -> list[Part]:
    """Returns the names of a checkpoint's variables as a part, one per line."""
    prefix, variables = folder / "model.ckpt-1", _t2t_variables()

    def write(contents: bytes) -> None:
        text = contents.decode("utf-8", "ignore").replace("\0", "")
        names = [*filter(None, dict.fromkeys(text.split("\n"))), "z"]
        write_tensors(prefix, dict(zip(names, variables.values(), strict=False)))

    names = "\n".join(variables).encode()
    write(names)
    return [Part(prefix, names, write)]


def write_opennmt(folder: Path) -> list[Part]:
    vectors.write_files("base", folder)
    (index,) = folder.glob("*.index")
    file = TensorFile(index.with_suffix(""))
    tensors = {name: file.read(name) for name in file.shapes()}

    def write(contents: bytes) -> None:
        write_tensors(file.prefix, tensors | {OBJECTS: contents})

    graph = Part(folder, tensors[OBJECTS].item(), write)
    return [*_files(folder, "*.yml", "*.py", "*.vocab", "checkpoint"), graph]


def write_descriptions(folder: Path) -> list[Part]:
    vectors.write_files("base", folder)
    return _files(folder, "*.py")


def write_saved_model(folder: Path) -> list[Part]:
    """Writes the parts of an export that its importer reads."""
    tokenizer, module = tiny.tokenizer(folder), tf.Module()
    module.weights = tiny.random_model().weights
    tf.saved_model.save(module, str(folder / "1"))
    extra = folder / "1" / "assets.extra"
    (extra / "tokenizer").mkdir(parents=True)
    tokenizer.save(extra / "tokenizer")
    (extra / "README.md").write_text(
        "A model that translates en into de: 9 parameters, float32.\n"
        f"Vocabulary `vocab.model` (SHA-256 {tokenizer.fingerprint})\n"
        "## Hyper-parameters\n\n```yaml\nd_model: 16\nd_ff: 32\nnum_heads: 2\n"
        "num_layers: 1\nvocab_size: 300\n```\n"
    )
    return _files(folder / "1", "assets.extra/README.md", "saved_model.pb")


def write_vocabulary(suffix: str) -> Callable[[Path], list[Part]]:
    """Returns a function that writes a vocabulary file with a suffix."""

    def prepare(folder: Path) -> list[Part]:
        path = folder / f"vocab{suffix}"
        if suffix == ".marian":
            sides = tiny.tokenizer(folder)
            pieces = ["<pad>", "</s>", "<unk>", *sides.pieces[3:], ">>deu<<"]
            models = sides.contents, sides.contents
            path.write_bytes(MarianTokenizer.from_pieces(*models, pieces).contents)
        elif suffix == ".model":
            tiny.tokenizer(folder)
        else:
            words = folder / "words.subwords"
            lines = [line for pair in tiny.pairs("train") for line in pair]
            build_vocabulary("wordpiece", lines, 60, words)
            tokenizer = load_tokenizer(words)
            joined = join_vocabularies(tokenizer, tokenizer)
            path.write_bytes(words.read_bytes() if suffix == ".subwords" else joined)
        return _files(folder, path.name, whole=False)

    return prepare


def write_encoded_data(folder: Path) -> list[Part]:
    origin = Origin("files", "data-1", "train.en and train.de", "en", "de")
    directory = folder / "train"
    write_shards(tiny.pairs("val"), tiny.tokenizer(folder), directory, "train", origin)
    manifest = json.loads((directory / "manifest.json").read_text())

    def part(path: Path) -> Part:
        def write(contents: bytes) -> None:
            path.write_bytes(contents)
            for file in (manifest["shards"][0][kind] for kind in ("tokens", "lengths")):
                data = (directory / file["name"]).read_bytes()
                digest = hashlib.sha256(data).hexdigest()
                file |= {"bytes": len(data), "sha256": digest}
            (directory / "manifest.json").write_text(json.dumps(manifest))

        return Part(directory, path.read_bytes(), write)

    arrays = map(part, sorted(directory.glob("*.npy")))
    return [*arrays, *_files(directory, "manifest.json", "*.tsv")]


def write_hyper_parameters(folder: Path) -> list[Part]:
    tiny.write_hparams(folder)
    return _files(folder, "*", whole=False)


def write_model_directory(folder: Path) -> list[Part]:
    directory, tokenizer = ModelDir(folder / "model"), tiny.tokenizer(folder)
    values = hparams.load(str(tiny.write_hparams(folder)))
    data = RunMetadata("files", "en", "de", "/data", "f", tokenizer.fingerprint)
    directory.begin(values, data, tokenizer)
    arrays = {f"w{n}": np.full(n, n, "f4") for n in range(3)}
    for path in (directory.checkpoint_dir, directory.best_dir):
        checkpoints.save(path, 2, arrays, arrays, {"bleu": 3.0, "data": data.data})
    checkpoints.save(
        directory.path, 2, arrays, meta={"averaged_steps": [2]}, name="averaged"
    )
    directory.result_file.write_text('{"averaged_steps": [2], "bleu": 3.0}')
    (directory.path / "training_log.tsv").write_text("step\tloss\n2\t1.5\n")
    return _files(directory.path, "*.*", "averaged/*", "*/step*/*.json")


def write_pairs(*suffixes: str) -> Callable[[Path], list[Part]]:
    """Returns a function that writes files of pairs with these suffixes."""

    def prepare(folder: Path) -> list[Part]:
        paths = [path for path in samples.write(folder) if path.suffix in suffixes]
        return _files(folder, *(path.name for path in paths), whole=False)

    return prepare


def write_archives(folder: Path) -> list[Part]:
    samples.write(folder)
    members = _members(folder / "moses.zip")
    text = (folder / "table.tsv").read_bytes()
    compressors: dict[str, Callable[[bytes], bytes]] = {
        "gz": gzip.compress,
        "bz2": bz2.compress,
        "xz": lzma.compress,
        "zst": zstandard.compress,
    }
    for suffix, compress in compressors.items():
        (folder / f"pairs.tsv.{suffix}").write_bytes(compress(text))
    return [*members, *_files(folder, "pairs.tsv.*", whole=False)]


_DOCUMENTS = {
    "a.srt": "1\n00:00:01,000 --> 00:00:02,000\n<i>One</i>\ntwo.\n\n",
    "a.vtt": "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Ann>One two.\n\n",
    "a.json": '{"a": ["One {count} two", null, {"b": "three"}]}',
    "a.properties": "# Note\na = One {0} two\\\n  three\nb: f\\u00fcnf\n",
}


def write_documents(folder: Path) -> list[Part]:
    samples.write(folder)
    for name, text in _DOCUMENTS.items():
        (folder / name).write_text(text)
    names = [p.name for p in folder.glob("*.*") if documents.find_format(p)]
    return _files(folder, *sorted(names), whole=False)
