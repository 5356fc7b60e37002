"""Untrusted files cannot run code or write outside of their directory.

tests/runs/test_model_dir.py tests links that lead out of a model directory.
"""

import ast
import hashlib
import io
import json
import os
import pickle
import shutil

import numpy as np
import pytest

from t2t_repro import hparams
from t2t_repro.data.manifest import Origin
from t2t_repro.data.shards import load_shards, write_shards
from t2t_repro.runs import checkpoint_rotation, checkpoints
from t2t_repro.runs.model_dir import ModelDir
from t2t_repro.system.errors import UserError
from tests import run_command
from tests.data.code_points import CodePointTokenizer

PACKAGE = run_command.ROOT / "t2t_repro"
# Modules, functions and YAML loaders that can run code from a file.
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "marshal", "shelve", "joblib"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "execfile"}
FORBIDDEN_YAML = {"unsafe_load", "full_load", "UnsafeLoader", "FullLoader", "Loader"}


class Payload:
    """An object that creates a folder when it is unpickled."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def test_payload_of_these_tests_works(tmp_path):
    pickle.loads(pickle.dumps(Payload(tmp_path / "created")))
    assert (tmp_path / "created").is_dir()


TAGS = [
    "!!python/object/apply:os.mkdir ['{folder}']",
    "!!python/object/new:os.mkdir ['{folder}']",
    "!!python/name:os.mkdir",
    "!!python/module:os",
    "!!python/object:tests.test_untrusted_files.Payload {{folder: x}}",
    "!!python/tuple [1, 2]",
    "!!map {{? !!python/object/apply:os.mkdir ['{folder}'] : 1}}",
]


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("text", ["seed: {}", "{}", "base: {}", "? {}\n: 1"])
def test_tags_in_hyper_parameters_are_rejected_and_not_run(tmp_path, tag, text):
    folder = tmp_path / "created"
    path = tmp_path / "set.yaml"
    path.write_text(text.format(tag.format(folder=folder)), encoding="utf-8")
    for read in (hparams.load, hparams.read):
        with pytest.raises(UserError, match=r"set\.yaml"):
            read(str(path))
    assert not folder.exists()


def test_references_do_not_expand_to_gigabytes(tmp_path):
    path = tmp_path / "set.yaml"
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    for name, previous in zip("bcdefghijkl", "abcdefghijk", strict=True):
        lines.append(f"{name}: &{name} [{', '.join([f'*{previous}'] * 9)}]")
    path.write_text("\n".join([*lines, "seed: *l"]), encoding="utf-8")
    with pytest.raises(UserError, match=r"set\.yaml:2: not valid YAML: a reference"):
        hparams.load(str(path))


@pytest.mark.parametrize(
    "base", ["../base", "/etc/passwd", "base.yaml", "configs/base"]
)
def test_set_can_extend_only_named_sets(tmp_path, base):
    path = tmp_path / "set.yaml"
    path.write_text(f"base: {base}\n", encoding="utf-8")
    with pytest.raises(UserError, match="no hyper-parameter set is called"):
        hparams.load(str(path))


@pytest.fixture
def shards(tmp_path):
    """A directory of shards with two pairs."""
    origin = Origin("files", "data-1", "train.en and train.de", "en", "de")
    path = tmp_path / "shards" / "train"
    write_shards([("a", "b"), ("c", "d")], CodePointTokenizer(), path, "train", origin)
    return path


def exchange(shards, name, contents):
    """Replaces the contents of a shard's file and updates the manifest to match."""
    (shards / name).write_bytes(contents)
    manifest = json.loads((shards / "manifest.json").read_text())
    for shard in manifest["shards"]:
        for part in ("tokens", "lengths"):
            if shard[part]["name"] == name:
                shard[part]["bytes"] = len(contents)
                shard[part]["sha256"] = hashlib.sha256(contents).hexdigest()
    (shards / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize("part", ["tokens", "lengths"])
@pytest.mark.parametrize("form", ["npy", "npz", "pickle"])
def test_pickle_in_a_shard_is_not_loaded(shards, tmp_path, part, form):
    folder = tmp_path / "created"
    array = np.array([Payload(folder)], dtype=object)
    file = io.BytesIO()
    if form == "npy":
        np.save(file, array, allow_pickle=True)
    elif form == "npz":
        np.savez(file, x=array)
    else:
        pickle.dump(array, file)
    exchange(shards, f"train-00000-of-00001.{part}.npy", file.getvalue())
    with pytest.raises(UserError, match="is damaged"):
        load_shards(shards)
    assert not folder.exists()


@pytest.mark.parametrize("part", ["tokens", "lengths"])
def test_damaged_header_of_a_shard_is_refused(shards, part):
    header = b"{'descr': '<i4', 'fortran_order': False, 'shape': (2, "
    size = len(header).to_bytes(2, "little")
    contents = b"\x93NUMPY\1\0" + size + header + bytes(8)
    exchange(shards, f"train-00000-of-00001.{part}.npy", contents)
    with pytest.raises(UserError, match=rf"{part}\.npy is damaged"):
        load_shards(shards)


@pytest.mark.parametrize("name", ["../outside.npy", "/dev/zero", "a/b.npy", ".."])
def test_shard_files_must_be_in_their_own_folder(shards, name):
    manifest = json.loads((shards / "manifest.json").read_text())
    manifest["shards"][0]["tokens"]["name"] = name
    (shards / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(UserError, match=r"manifest\.json is not a manifest of shards"):
        load_shards(shards)


@pytest.mark.parametrize(
    "meta",
    [
        {"step": 3, "path": "../../outside", "name": "/tmp/outside"},
        {"step": -(10**9)},
        {"step": 10**17},
    ],
)
def test_checkpoint_metadata_cannot_change_its_path(tmp_path, meta):
    weights = {"w": np.zeros(3, "float32")}
    saved = checkpoints.save(tmp_path / "inside", 3, weights, weights)
    (saved.path / "checkpoint.json").write_text(json.dumps(meta))
    before = sorted(tmp_path.rglob("*"))
    opened = checkpoints.open_checkpoint(saved.path)
    assert opened.path == saved.path
    assert opened.step == meta["step"]
    assert opened.tensors().read("w").tolist() == [0, 0, 0]
    assert sorted(tmp_path.rglob("*")) == before


def test_pruning_follows_no_links(tmp_path):
    """Links may be named like checkpoints or like temporary folders."""
    weights = {"w": np.zeros(3, "float32")}
    mine = tmp_path / "mine"
    for step in (1, 2, 3):
        checkpoints.save(tmp_path / "theirs", step, weights, weights)
        checkpoints.save(mine, 10 + step, weights, weights)
    for link in ("step-00000001", ".writing-step-00000009", ".removing-x"):
        (mine / link).symlink_to(tmp_path / "theirs" / "step-00000001")
    (tmp_path / "theirs" / "notes").write_text("mine")
    before = contents(tmp_path / "theirs")
    checkpoint_rotation.prune(mine, keep=1)
    assert contents(tmp_path / "theirs") == before
    assert [c.step for c in checkpoints.list_checkpoints(mine)] == [13]


def contents(folder):
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): path.read_bytes() for path in files}


@pytest.mark.parametrize(
    "changes",
    [
        {"problem": "../files"},
        {"problem": "os.system"},
        {"problem": "os:system"},
        {"source_lang": "../../en"},
        {"target_lang": "de; touch x"},
        {"data_dir": "/dev/null"},
        {"data_dir": 7},
        {"extra": "field"},
    ],
)
def test_model_json_cannot_refer_to_other_folders(trained_copy, changes):
    path = trained_copy.model_dir / "model.json"
    values = json.loads(path.read_text(encoding="utf-8")) | changes
    path.write_text(json.dumps(values), encoding="utf-8")
    before = contents(trained_copy.folder)
    with pytest.raises(UserError):
        ModelDir(trained_copy.model_dir).problem()
    assert contents(trained_copy.folder) == before


def test_average_does_not_follow_links_with_temporary_names(trained_copy, tmp_path):
    """Links with the names of a command's temporary folders are not followed."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "checkpoint.json").write_text('{"step": 1}')
    for name in (".writing-averaged", ".writing-over-averaged"):
        (trained_copy.model_dir / name).symlink_to(outside)
    flags = ("--model_dir", str(trained_copy.model_dir), "--last", "1")
    result = run_command.run("average", *flags)
    assert result.status == 0 or run_command.is_one_clear_line(result)
    assert contents(outside) == {str(outside / "checkpoint.json"): b'{"step": 1}'}


def test_package_and_tools_do_not_load_pickles_or_evaluate_code():
    violations = []
    for path in (*PACKAGE.rglob("*.py"), *run_command.ROOT.glob("tools/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            violations += [f"{path}:{node.lineno} {name}" for name in forbidden(node)]
    assert violations == []


def forbidden(node):
    """Returns the forbidden names in an expression or import."""
    if isinstance(node, ast.Import):
        names = {alias.name.partition(".")[0] for alias in node.names}
        return names & FORBIDDEN_MODULES
    if isinstance(node, ast.ImportFrom):
        return {str(node.module).partition(".")[0]} & FORBIDDEN_MODULES
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return {node.attr} & FORBIDDEN_YAML if node.value.id == "yaml" else ()
    if not isinstance(node, ast.Call):
        return ()
    if isinstance(node.func, ast.Name):
        return {node.func.id} & FORBIDDEN_CALLS
    if ast.unparse(node.func) == "np.load":
        allowed = [k for k in node.keywords if k.arg == "allow_pickle"]
        if allowed and ast.unparse(allowed[0].value) != "False":
            return ("np.load with allow_pickle",)
    if ast.unparse(node.func) == "yaml.load" and not (
        {ast.unparse(arg) for arg in node.args} & {"_StrictLoader", "_TextLoader"}
    ):
        return ("yaml.load",)
    return ()


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from marshal import loads",
        "eval(x)",
        "yaml.load(x)",
        "yaml.load(x, yaml.FullLoader)",
        "np.load(f, allow_pickle=True)",
    ],
)
def test_forbidden_code_is_detected(text):
    assert [name for node in ast.walk(ast.parse(text)) for name in forbidden(node)]


def test_files_in_a_folder_for_shards_are_not_deleted(trained_copy):
    encoded = trained_copy.data_dir / "encoded" / "files.en-de.sentencepiece-300"
    shutil.rmtree(encoded / "train")
    (encoded / "train").mkdir()
    (encoded / "train" / "notes.txt").write_text("mine")
    result = run_command.run("train", *trained_copy.arguments()[:-1])
    assert run_command.is_one_clear_line(result), result
    assert (encoded / "train" / "notes.txt").read_text() == "mine"
