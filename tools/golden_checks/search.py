"""Beam search alone, over tables of logits."""

from __future__ import annotations

import re
from typing import Any

import tensorflow as tf

from golden_checks.sheet import Sheet
from t2t_repro.decoding.beam_search import beam_search
from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.decoding.decode_loop import decode_batch

SCORES = 1e-4
_KEY = re.compile(r"beam(\d+)_len(\d+)_alpha([\d.]+)_(early|full)/ids")


class TableDecoder:
    """Takes the logits of the next symbol from a table, row by last symbol.

    It follows `t2t_repro.decoding.decoder.StepwiseDecoder`; its state is the table,
    float32 (batch, V, V).
    """

    def step(
        self, ids: tf.Tensor, index: tf.Tensor, state: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns float32 (batch, beam, V), logits, for int32 (batch, beam)."""
        return tf.gather(state, ids, batch_dims=1), state

    def select_beams(self, state: tf.Tensor, parents: tf.Tensor) -> tf.Tensor:
        """Returns the table: it has no past."""
        return state

    def select_sentences(self, state: tf.Tensor, keep: tf.Tensor) -> tf.Tensor:
        """Keeps the tables of some sentences."""
        return tf.gather(state, keep)


def is_search(arrays: Any) -> bool:
    """Whether a file holds such searches."""
    return "tables" in arrays


def check(sheet: Sheet) -> None:
    """Repeats every search of the file."""
    tables = tf.constant(sheet.take("tables"))
    for name in list(sheet.arrays):
        if not (found := _KEY.fullmatch(name)):
            continue
        beam = int(found[1])
        config = DecodingConfig(
            beam_size=beam,
            alpha=float(found[3]),
            nbest=1 if found[4] == "early" else beam,
            tensor2tensor_rules=True,
        )
        search = beam_search(config, tf.fill([tables.shape[0]], int(found[2])))
        result = decode_batch(search, TableDecoder(), tables)
        # tensor2tensor's ids begin with the start symbol, 0.
        ids = tf.pad(result.ids, [[0, 0], [0, 0], [1, 0]])
        sheet.compare_ids(name, ids)
        scores = name.replace("/ids", "/scores")
        sheet.compare(scores, result.scores, SCORES, relative=True)
