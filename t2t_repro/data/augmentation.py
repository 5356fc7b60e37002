"""Random changes of source sentences in training: case, punctuation and typos."""

import re

import numpy as np
import tensorflow as tf

from t2t_repro.data.encoded_pairs import Ids, IntArray
from t2t_repro.hparams import HParams
from t2t_repro.tokenizers.tokenizer import LABEL, Tokenizer

_LABEL = re.compile(LABEL)
_END_MARK = re.compile(r"\s*[.!?\u2026\u3002\uff01\uff1f\u061f\u0964]+\s*$")
# Distinguishes these random numbers from those that compose the batches.
_PURPOSE = 1


class Augmentation:
    """Changes source sentences as a function of the seed, the epoch and the pair.

    Ids are decoded, changed as text and encoded again, so that the stored data are
    those of a training run without changes.

    Args:
        hparams: Probabilities of the changes, maximum length and seed.
        tokenizer: Tokenizer of the data.
    """

    def __init__(self, hparams: HParams, tokenizer: Tokenizer) -> None:
        self._hparams, self._tokenizer = hparams, tokenizer

    def change(self, inputs: Ids, pairs: IntArray, epoch: int) -> Ids:
        """Changes the sources of a micro-batch.

        Args:
            inputs: int32 (rows, width), one sentence per row, ending in EOS.
            pairs: int (pairs,), number of the pair in each of the first rows.
            epoch: Number of the epoch of the corpus.

        Returns:
            int32 (rows, width) or, if a changed sentence is longer, twice as wide, but
            at most `max_length`. A sentence that would be longer is not changed.
        """
        decoded = self._tokenizer.decode(tf.constant(inputs[: len(pairs)])).numpy()
        texts = [text.decode() for text in decoded]
        changed = [
            self.change_text(text, int(pair), epoch)
            for text, pair in zip(texts, pairs, strict=True)
        ]
        before, after = (
            self._tokenizer.encode(tf.constant(some)).to_list()
            for some in (texts, changed)
        )
        width = inputs.shape[1]
        widest = max(width, min(2 * width, self._hparams.max_length))
        wider = np.pad(inputs, [(0, 0), (0, widest - width)])
        for row, (old, new) in enumerate(zip(before, after, strict=True)):
            # Text cannot represent all ids, for example those of unknown tokens.
            is_exact = old == inputs[row, : len(old)].tolist()
            if old != new and is_exact and 1 < len(new) <= widest:
                wider[row] = new + [0] * (widest - len(new))
        return wider if wider[:, width:].any() else wider[:, :width]

    def change_text(self, text: str, pair: int, epoch: int) -> str:
        """Returns a source sentence after its random changes; a label is kept."""
        h = self._hparams
        rng = np.random.default_rng([h.seed, epoch, pair, _PURPOSE])
        label = match[0] if (match := _LABEL.match(text)) else ""
        text = text.removeprefix(label)
        end_mark, case = rng.random(2)
        if end_mark < h.augment_no_end_mark:
            text = _END_MARK.sub("", text)
        if h.augment_typos:
            text = " ".join(
                _mistype(word, rng) if rng.random() < h.augment_typos else word
                for word in text.split(" ")
            )
        if case < h.augment_upper_case:
            text = text.upper()
        elif case < h.augment_upper_case + h.augment_title_case:
            text = text.title()
        return label + text


def _mistype(word: str, rng: np.random.Generator) -> str:
    """Swaps two adjacent characters of a word, omits one or doubles one."""
    if len(word) < 2:
        return word
    place, kind = rng.integers(len(word) - 1), rng.integers(3)
    one, two = word[place], word[place + 1]
    middle = (two + one, two, one + one + two)[kind]
    return word[:place] + middle + word[place + 2 :]
