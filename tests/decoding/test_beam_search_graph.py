"""Beam search with tensor2tensor's rules, and compiled by XLA."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.decoding.decode_loop import BeamSearchResult
from tests import golden
from tests.decoding.results import beam_search
from tests.decoding.toy_decoders import TableDecoder

# From tensor2tensor 1.15.7's utils/beam_search.py:beam_search, run with TF 1.15.5 on
# random tables of logits. A key gives beam size, limit, alpha and stop_early.
VECTORS = golden.load(
    Path(__file__).parents[1] / "data" / "golden" / "beam_search_only.npz"
)
CASES = [name.removesuffix("/ids") for name in VECTORS if name.endswith("/ids")]


@pytest.mark.parametrize("case", CASES)
def test_tensor2tensor_rules_equal_tensor2tensor(case: str) -> None:
    beam, length, alpha, stop = case.split("_")
    beam_size = int(beam.removeprefix("beam"))
    tables = VECTORS["tables"]
    result = beam_search(
        TableDecoder(),
        tf.constant(tables),
        DecodingConfig(
            beam_size,
            alpha=float(alpha.removeprefix("alpha")),
            nbest=1 if stop == "early" else beam_size,
            tensor2tensor_rules=True,
        ),
        limits=tf.fill([len(tables)], int(length.removeprefix("len"))),
    )
    # tensor2tensor's ids begin with the start token.
    np.testing.assert_array_equal(result.ids, VECTORS[f"{case}/ids"][:, :, 1:])
    np.testing.assert_allclose(result.scores, VECTORS[f"{case}/scores"], atol=1e-4)


def test_xla_compiles_the_search_with_fixed_sizes() -> None:
    tables = tf.constant(VECTORS["tables"])

    def search(tables: tf.Tensor) -> BeamSearchResult:
        return beam_search(
            TableDecoder(),
            tables,
            DecodingConfig(3, alpha=0.6),
            limits=tf.constant([6, 8, 3, 7]),
            compact_at=None,
            width=8,
        )

    expected = search(tables)
    result = tf.function(search, jit_compile=True)(tables)
    np.testing.assert_array_equal(result.ids, expected.ids)
    np.testing.assert_allclose(result.scores, expected.scores, rtol=1e-5)
