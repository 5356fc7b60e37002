"""Batches of lines of similar length, and checks of the limits of their lengths."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from t2t_repro.decoding.config import DecodingConfig
from t2t_repro.tokenizers.tokenizer import Tokenizer

Lengths = npt.NDArray[np.integer]


def divide_lines(
    texts: Sequence[str],
    lengths: Lengths,
    search: DecodingConfig,
    batch_size: int,
    choose_size: Callable[[Lengths], int],
) -> list[list[int]]:
    """Returns the indices of the texts of each batch, without blank texts.

    Texts of invisible characters may lack tokens; they are blank, too. With
    `tensor2tensor_rules` a translation depends on its batch. Texts are then sorted
    by number of words and every batch has `batch_size` sentences, as in
    tensor2tensor (utils/decoding.py:_get_sorted_inputs).

    Args:
        texts: Texts.
        lengths: int64 (texts,), number of tokens of each text, EOS included.
        search: Settings of the search.
        batch_size: Number of sentences per batch with `tensor2tensor_rules`.
        choose_size: Returns the number of sentences per batch with other rules, given
            the lengths of the texts that are not blank, the longest first.
    """
    is_used = [bool(text.strip()) for text in texts] & (lengths > 1)
    if search.tensor2tensor_rules:
        lengths = np.array([len(text.split()) for text in texts])
    order = np.argsort(-lengths, kind="stable")
    indices = order[is_used[order]].tolist()
    if not search.tensor2tensor_rules:
        batch_size = choose_size(lengths[indices])
    starts = range(0, len(indices), batch_size)
    return [indices[start : start + batch_size] for start in starts]


def check_limits(
    groups: Sequence[Sequence[int]],
    lengths: Lengths,
    search: DecodingConfig,
    target: Tokenizer,
    prefixes: Sequence[str] | None,
) -> None:
    """Raises UserError if a prefix or the minimum length exceeds its limit.

    Args:
        groups: Result of `divide_lines`.
        lengths: int64 (texts,), number of tokens that the model reads of each text.
        search: Settings of the search.
        target: Tokenizer of the translations.
        prefixes: Prefix of each translation; None for no prefixes.
    """
    if not groups:
        return
    if search.min_length:
        # The last text is the shortest and has the lowest limit.
        search.check_min_length(int(lengths[groups[-1][-1]]))
    if prefixes is not None:
        used = np.concatenate(groups)
        texts = [prefixes[n] for n in used]
        sizes = target.encode(tf.constant(texts)).row_lengths() - 1
        for text, size, n in zip(texts, sizes.numpy(), used, strict=True):
            search.check_prefix(text, size, int(lengths[n]))
