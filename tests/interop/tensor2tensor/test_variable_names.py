"""Tests of converting variables from and to tensor2tensor's names."""

import numpy as np
import pytest
from golden_checks.t2t_variables import convert_to_t2t

from t2t_repro.interop.tensor2tensor.variable_names import convert_from_t2t
from t2t_repro.models.variables import named_variables
from tests import golden


def test_first_shards_of_a_table_have_one_row_more():
    # Three shards of 5 rows have 2, 2 and 1 rows (modalities.py:get_weights).
    table = np.arange(10, dtype=np.float32).reshape(5, 2)
    shards = convert_to_t2t({"embedding/table": table}, "post", num_shards=3)
    scope = "transformer/symbol_modality_5_2/shared/weights"
    assert {name: value.tolist() for name, value in shards.items()} == {
        f"{scope}_0": [[0, 1], [2, 3]],
        f"{scope}_1": [[4, 5], [6, 7]],
        f"{scope}_2": [[8, 9]],
    }


def test_rejects_a_variable_that_tensor2tensor_lacks():
    with pytest.raises(KeyError, match="rotary"):
        convert_to_t2t({"encoder/layer_0/rotary/kernel": np.zeros(1)}, "post")


CASES = ["v1_postnorm", "v3_prenorm", "v1_posemb", "v3_unshared"]


@pytest.mark.parametrize("case", CASES)
def test_conversion_to_and_from_t2t_names_is_lossless(shared_dir, case):
    arrays = golden.load(shared_dir / "t2t/golden" / f"{case}.npz")
    theirs = golden.t2t_variables(arrays)
    model = golden.model_of(arrays, hparams := golden.hparams_of(arrays))
    shapes = {name: tuple(v.shape) for name, v in named_variables(model).items()}
    back = convert_to_t2t(convert_from_t2t(theirs, shapes, hparams.norm), hparams.norm)
    assert back.keys() == theirs.keys()
    for name, value in theirs.items():
        np.testing.assert_array_equal(back[name], value, err_msg=name)
