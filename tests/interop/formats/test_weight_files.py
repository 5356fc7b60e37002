"""Tests that the readers reject manipulated headers, zip archives and pickles."""

import json
import zipfile

import numpy as np
import pytest

from t2t_repro.interop.formats.npz import read_npz
from t2t_repro.interop.formats.safetensors import read_safetensors
from t2t_repro.interop.formats.torch_file import read_torch
from t2t_repro.system.errors import UserError
from tests.interop.marian.small_marian import safetensors

ARRAYS = {"a": np.ones((2, 3), np.float32), "b": np.ones(4, np.float32)}


@pytest.mark.parametrize(
    "entry",
    [
        {"shape": [2, 4]},
        {"shape": [-2, -3]},
        {"shape": [2.0, 3.0]},
        {"shape": [0, 10**30], "data_offsets": [0, 0]},
        {"shape": None},
        {"data_offsets": [0, 10**12]},
        {"data_offsets": [-24, 0]},
        {"data_offsets": [16, 40]},
        {"data_offsets": [24, 0]},
        {"data_offsets": [0]},
        {"dtype": "I64", "shape": [3]},
        {"dtype": ["F32"]},
        {"dtype": "F16"},
    ],
    ids=str,
)
def test_rejects_a_manipulated_safetensors_header(tmp_path, entry):
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors(ARRAYS))
    np.testing.assert_equal(read_safetensors(path), ARRAYS)
    path.write_bytes(safetensors(ARRAYS, a=entry))
    with pytest.raises(UserError, match=r"model\.safetensors"):
        read_safetensors(path)


@pytest.mark.parametrize("length", [0, 1, 2**20, 2**40, 2**63, 2**64 - 1])
def test_rejects_a_wrong_safetensors_header_length(tmp_path, length):
    path = tmp_path / "model.safetensors"
    path.write_bytes(length.to_bytes(8, "little") + safetensors(ARRAYS)[8:])
    with pytest.raises(UserError, match=r"model\.safetensors"):
        read_safetensors(path)


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, \0), }",
        "'''",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 2}",
    ],
)
def test_rejects_a_manipulated_npz_header(tmp_path, header):
    path = tmp_path / "model.npz"
    np.savez(path, **ARRAYS)
    np.testing.assert_equal(read_npz(path), ARRAYS)
    size = len(header).to_bytes(2, "little")
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a.npy", b"\x93NUMPY\1\0" + size + header.encode() + bytes(24))
    with pytest.raises(UserError, match=r"model\.npz is not an npz file of numbers"):
        read_npz(path)


def test_rejects_a_manipulated_torch_file(tmp_path):
    torch = pytest.importorskip("torch")
    path = tmp_path / "pytorch_model.bin"
    table = torch.ones(1000, 10)
    torch.save({name: table for name in "abcd"}, path)
    assert len(read_torch(path)) == 4
    torch.save({str(n): table for n in range(20)}, path)
    with pytest.raises(UserError, match="too many tensors share a storage"):
        read_torch(path)
    torch.save({"a": table}, path)
    with zipfile.ZipFile(path) as file:
        contents = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, each in contents.items():
            file.writestr(name, each)
    with pytest.raises(UserError, match="compressed"):
        read_torch(path)
    with zipfile.ZipFile(path, "w") as file, pytest.warns(UserWarning, match="Dupl"):
        for name, each in [*contents.items()] * 2:
            file.writestr(name, each)
    with pytest.raises(UserError, match="duplicate file in the archive"):
        read_torch(path)
    # The opcodes of {"a": 1, "a": 2}.
    pickled = b"\x80\x02}(X\x01\0\0\0aK\x01X\x01\0\0\0aK\x02u."
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", pickled)
    with pytest.raises(UserError, match="duplicate name in the pickle"):
        read_torch(path)


@pytest.mark.parametrize("dtype", ["F64", "F32", "F16", "BF16"])
def test_reads_floating_point_numbers_of_every_size(tmp_path, dtype):
    # 2.5 is exact in every format: binary 1.01 times 2. The bytes are the sign,
    # exponent and fraction, little-endian.
    data = {
        "F64": "0000000000000440",
        "F32": "00002040",
        "F16": "0041",
        "BF16": "2040",
    }[dtype]
    numbers = bytes.fromhex(data) * 2
    entry = {"dtype": dtype, "shape": [2, 1], "data_offsets": [0, len(numbers)]}
    header = json.dumps({"__metadata__": {"format": "pt"}, "a": entry}).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + numbers)
    arrays = read_safetensors(path)
    assert [*arrays] == ["a"]
    assert arrays["a"].astype(np.float64).tolist() == [[2.5], [2.5]]
