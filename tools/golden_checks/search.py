"""Checks of beam search over tables of logits."""

from __future__ import annotations

import re

import tensorflow as tf

from golden_checks.sheet import Sheet
from t2t_repro.decoding.beam_search import beam_search
from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.decoding.decode_loop import decode_batch

_KEY = re.compile(r"beam(\d+)_len(\d+)_alpha([\d.]+)_(early|full)/ids")


class TableDecoder:
    """Decoder that reads the next token's logits from the last token's table row.

    Implements `t2t_repro.decoding.decoder.StepwiseDecoder`. Its state is the table,
    float32 (batch, V, V).
    """

    def step(
        self, ids: tf.Tensor, index: tf.Tensor, state: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns logits, float32 (batch, beam, V), for ids, int32 (batch, beam)."""
        return tf.gather(state, ids, batch_dims=1), state

    def select_beams(self, state: tf.Tensor, parents: tf.Tensor) -> tf.Tensor:
        """Returns the table, which does not depend on the hypothesis."""
        return state

    def select_sentences(self, state: tf.Tensor, keep: tf.Tensor) -> tf.Tensor:
        """Returns the tables of the given sentences."""
        return tf.gather(state, keep)


def check(sheet: Sheet) -> None:
    """Repeats all searches of the file and compares ids and scores."""
    tables = tf.constant(sheet.take("tables"))
    for name in list(sheet.arrays):
        if not (match := _KEY.fullmatch(name)):
            continue
        beam, alpha = int(match[1]), float(match[3])
        nbest = 1 if match[4] == "early" else beam
        config = DecodingConfig(beam, alpha, nbest=nbest, tensor2tensor_rules=True)
        search = beam_search(config, tf.fill([tables.shape[0]], int(match[2])))
        result = decode_batch(search, TableDecoder(), tables)
        # tensor2tensor's ids begin with the start symbol, 0.
        ids = tf.pad(result.ids, [[0, 0], [0, 0], [1, 0]])
        sheet.compare_ids(name, ids)
        scores = name.replace("/ids", "/scores")
        # Each step adds a log probability, with a sum over the vocabulary.
        additions = int(match[2]) * tables.shape[-1]
        sheet.compare(scores, result.scores, additions, relative=True)
