"""A checkpoint of TensorFlow is found by its prefix, a file or its folder."""

import numpy as np
import pytest

from t2t_repro.interop.formats.tensor_bundle import find
from t2t_repro.runs.checkpoints import write_tensors
from t2t_repro.system.errors import UserError


def files(folder, *steps):
    for step in steps:
        write_tensors(folder / f"model.ckpt-{step}", {"x": np.zeros(1)})


def test_a_checkpoint_is_found_by_prefix_file_and_folder(tmp_path):
    files(tmp_path, 5)
    prefix = tmp_path / "model.ckpt-5"
    data = tmp_path / "model.ckpt-5.data-00000-of-00001"
    for path in (prefix, tmp_path / "model.ckpt-5.index", data, tmp_path):
        assert find(path) == prefix


def test_of_several_the_one_that_the_folder_names_is_taken(tmp_path):
    files(tmp_path, 5, 10)
    with pytest.raises(UserError, match=r"holds model\.ckpt-10, model\.ckpt-5; name"):
        find(tmp_path)
    # As tensor2tensor writes it, on a machine where the folder lay elsewhere.
    text = 'model_checkpoint_path: "/elsewhere/model.ckpt-5"\n'
    (tmp_path / "checkpoint").write_text(text, encoding="utf-8")
    assert find(tmp_path) == tmp_path / "model.ckpt-5"


def test_what_is_not_there_is_refused(tmp_path):
    with pytest.raises(UserError, match="holds no checkpoint; name one"):
        find(tmp_path)
    with pytest.raises(UserError, match=r"model\.ckpt-7\.index does not exist"):
        find(tmp_path / "model.ckpt-7")
