"""Signatures of a SavedModel that takes and returns ids.

Their graphs contain only operations of TensorFlow itself, not those of tensorflow_text,
so that any TensorFlow runtime can load them.
"""

import math
from collections.abc import Callable, Sequence

import tensorflow as tf

from t2t_repro.decoding.decode_loop import NO_HYPOTHESIS
from t2t_repro.models.log_probs import log_probs
from t2t_repro.models.transformer import Transformer
from t2t_repro.serving.microbatch import compute_in_microbatches, count_rows
from t2t_repro.serving.sanitize import count_omitted, join_notes, note_unread
from t2t_repro.tokenizers.tokenizer import EOS_ID, PAD_ID, cut_rows
from t2t_repro.translation.translator import Translator

# Maximum size of a micro-batch of the search: sentences times maximum output length.
# With a base model and a beam size of 4 the KV cache needs at most 0.8 GB (6 layers of
# keys and values with 512 channels of 4 bytes); copies double this.
SEARCH_POSITIONS = 8192
# Maximum number of positions per micro-batch of scoring; each has V logits.
SCORE_POSITIONS = 2048

_INPUTS = tf.TensorSpec([None, None], tf.int32, name="inputs")
_TARGETS = tf.TensorSpec([None, None], tf.int32, name="targets")


class IdSignatures:
    """Functions of the signatures; the object itself is not exported.

    The ids of each row are those of a text, then EOS; any ids may follow as padding. A
    server may therefore pad merged requests with any id.

    Args:
        models: Built models.
        best: Translator with these models; its `search.nbest` is 1.
        nbest: The same with `search.nbest` equal to the beam size.

    Attributes:
        signatures: Function and inputs of each signature, by name.
    """

    def __init__(
        self, models: Sequence[Transformer], best: Translator, nbest: Translator
    ) -> None:
        self._models, self._best, self._list = models, best, nbest
        self.signatures: dict[
            str, tuple[Callable[..., dict[str, tf.Tensor]], *tuple[tf.TensorSpec, ...]]
        ] = {
            "serving_default": (self.translate, _INPUTS),
            "nbest": (self.nbest, _INPUTS),
            "score": (self.score, _INPUTS, _TARGETS),
        }

    def translate(self, inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        """Translates sentences.

        Args:
            inputs: int32 (batch, source).

        Returns:
            ``outputs``, int32 (batch, target): ids with EOS, 0-padded; an output that
            is cut at the maximum length lacks EOS. Only padding for an empty text.
            ``scores``, float32 (batch,): log probability divided by the length penalty;
            0 for an empty text.
            ``notes``, string (batch,): description of the unread part, or "".
        """
        ids, scores, notes = self._search(self._best, inputs)
        return {"outputs": ids[:, 0], "scores": scores[:, 0], "notes": notes}

    def nbest(self, inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the n-best lists of sentences, best first.

        Args:
            inputs: int32 (batch, source).

        Returns:
            ``outputs``, int32 (batch, beam, target), and ``scores``, float32 (batch,
            beam). A missing hypothesis is only padding and has the score -1e7.
            ``notes`` are as in `translate`.
        """
        ids, scores, notes = self._search(self._list, inputs)
        return {"outputs": ids, "scores": scores, "notes": notes}

    def score(self, inputs: tf.Tensor, targets: tf.Tensor) -> dict[str, tf.Tensor]:
        """Scores given translations.

        Args:
            inputs: int32 (batch, source).
            targets: int32 (batch, target), cut to the maximum output length.

        Returns:
            ``log_probability``, float32 (batch,): sum over the target, EOS included, in
            nats.
            ``notes``, string (batch,), as in `translate`.
        """
        best = self._best
        tf.debugging.assert_equal(
            tf.shape(inputs)[0],
            tf.shape(targets)[0],
            "inputs and targets must have the same number of rows",
        )
        longest = best.search.longest(best.max_input_length)
        sources = check_and_cut_rows(inputs, best.tokenizer.vocab_size, "inputs")
        rows = check_and_cut_rows(targets, best.tokenizer.target.vocab_size, "targets")
        notes = join_notes(
            note_unread(count_omitted(sources, best.max_input_length), "subwords"),
            note_unread(count_omitted(rows, longest), "subwords of the translation"),
        )
        return self.score_rows(sources, rows, longest) | {"notes": notes}

    def score_rows(
        self, sources: tf.RaggedTensor, rows: tf.RaggedTensor, longest: int
    ) -> dict[str, tf.Tensor]:
        """Implements `score` for valid ids; targets are cut to `longest` ids."""
        inputs = cut_rows(sources, self._best.max_input_length).to_tensor()
        targets = cut_rows(rows, longest).to_tensor()
        width = tf.maximum(tf.shape(inputs)[1], tf.shape(targets)[1])
        (log_probability,) = compute_in_microbatches(
            self._score_microbatch,
            [inputs, targets],
            count_rows(SCORE_POSITIONS, width),
            [tf.TensorSpec([None], tf.float32)],
        )
        return {"log_probability": log_probability}

    def _score_microbatch(
        self, inputs: tf.Tensor, targets: tf.Tensor
    ) -> list[tf.Tensor]:
        """Returns the log probability of each target, float32 (batch,)."""
        members = [log_probs(model, inputs, targets) for model in self._models]
        # Averages the models' probabilities, as `EnsembleDecoder` does.
        mean = tf.reduce_logsumexp(tf.stack(members), axis=0) - math.log(len(members))
        return [tf.reduce_sum(mean, axis=1)]

    def _search(
        self, translator: Translator, inputs: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Translates rows of ids, int32 (batch, source).

        Returns:
            Ids, int32 (batch, nbest, target), scores, float32 (batch, nbest), and
            notes, string (batch,).
        """
        search, longest = translator.search, translator.max_input_length
        nbest, width = search.nbest, search.longest(longest)
        rows = check_and_cut_rows(inputs, translator.tokenizer.vocab_size, "inputs")
        notes = note_unread(count_omitted(rows, longest), "subwords")
        rows = cut_rows(rows, longest)

        def translate(inputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            ids, scores = translator.translate_ids(inputs)
            ids = tf.pad(
                ids[:, :nbest], [[0, 0], [0, 0], [0, width - tf.shape(ids)[2]]]
            )
            return tf.ensure_shape(ids, [None, nbest, width]), scores[:, :nbest]

        inputs = rows.to_tensor()
        ids, scores = compute_in_microbatches(
            translate,
            [inputs],
            count_rows(SEARCH_POSITIONS, search.longest(tf.shape(inputs)[1])),
            [
                tf.TensorSpec([None, nbest, width], tf.int32),
                tf.TensorSpec([None, nbest], tf.float32),
            ],
        )
        empty = tf.equal(rows.row_lengths(), 1)[:, None]
        empty_scores = tf.constant([[0.0] + [NO_HYPOTHESIS] * (nbest - 1)])
        ids = tf.where(empty[:, :, None], PAD_ID, ids)
        lengths = tf.math.count_nonzero(ids, axis=2, dtype=tf.int32)
        ids = ids[:, :, : tf.reduce_max(tf.concat([[0], tf.reshape(lengths, [-1])], 0))]
        return ids, tf.where(empty, empty_scores, scores), notes


def check_and_cut_rows(ids: tf.Tensor, vocab_size: int, name: str) -> tf.RaggedTensor:
    """Cuts each row, int32 (batch, length), after its first EOS.

    A row without EOS, and PAD or an id outside of the vocabulary before EOS, is an
    INVALID_ARGUMENT error that contains the `name` of the ids.
    """
    ends = tf.cast(tf.equal(ids, EOS_ID), tf.int32)
    is_read = tf.equal(tf.cumsum(ends, axis=1, exclusive=True), 0)
    is_valid = (ids >= EOS_ID) & (ids < vocab_size) | ~is_read
    has_end = tf.reduce_any(tf.equal(ids, EOS_ID), axis=1)
    check = tf.debugging.assert_equal(
        tf.reduce_all(is_valid) & tf.reduce_all(has_end),
        True,
        f"each row of {name} must consist of ids from 2 to {vocab_size - 1}, then "
        "EOS (1), then any padding",
    )
    with tf.control_dependencies([check]):
        lengths = tf.math.count_nonzero(is_read, axis=1)
        return tf.RaggedTensor.from_tensor(tf.identity(ids), lengths=lengths)
