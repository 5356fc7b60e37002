"""Tests of finding a TensorFlow checkpoint by its prefix, file or folder."""

import numpy as np
import pytest

from t2t_repro.interop.formats.tensor_bundle import find
from t2t_repro.runs.tensor_file import write_tensors
from t2t_repro.system.errors import UserError


def write_checkpoints(folder, *steps):
    for step in steps:
        write_tensors(folder / f"model.ckpt-{step}", {"x": np.zeros(1)})


def test_finds_a_checkpoint_by_prefix_file_and_folder(tmp_path):
    write_checkpoints(tmp_path, 5)
    prefix = tmp_path / "model.ckpt-5"
    data = tmp_path / "model.ckpt-5.data-00000-of-00001"
    for path in (prefix, tmp_path / "model.ckpt-5.index", data, tmp_path):
        assert find(path) == prefix


def test_finds_the_checkpoint_that_the_checkpoint_file_names(tmp_path):
    write_checkpoints(tmp_path, 5, 10)
    with pytest.raises(
        UserError, match=r"contains model\.ckpt-10, model\.ckpt-5; give"
    ):
        find(tmp_path)
    # tensor2tensor records the folder's path on the training machine.
    text = 'model_checkpoint_path: "/elsewhere/model.ckpt-5"\n'
    (tmp_path / "checkpoint").write_text(text, encoding="utf-8")
    assert find(tmp_path) == tmp_path / "model.ckpt-5"


def test_rejects_a_missing_checkpoint(tmp_path):
    with pytest.raises(UserError, match="contains no checkpoint; give the prefix"):
        find(tmp_path)
    with pytest.raises(UserError, match=r"model\.ckpt-7\.index does not exist"):
        find(tmp_path / "model.ckpt-7")
