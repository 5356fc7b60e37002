"""Vocabulary of word pieces, built from text by tensor2tensor's algorithm."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from t2t_repro.tokenizers.line_samples import sample_by_size
from t2t_repro.tokenizers.plain_tokenizer import piece_starts, spell_word, split_words
from t2t_repro.tokenizers.word_pieces import ESCAPE_CHARACTERS, RESERVED_PIECES

# Size of the text in which pieces are counted. tensor2tensor reads about 1e6 bytes of
# each language's file (generator_utils.py:get_or_generate_vocab_inner).
MAX_BYTES = 2_000_000
# In characters; limits the work per word, which is otherwise quadratic in its length
# (text_problems.py:Text2TextProblem.max_subtoken_length).
MAX_PIECE_LENGTH = 200
_ITERATIONS = 4
_LARGEST_MIN_COUNT = 1000


def build_word_pieces(
    lines: Iterable[str], target_size: int, max_bytes: int = MAX_BYTES
) -> list[str]:
    """Builds a vocabulary of about `target_size` pieces, special ones first.

    Bisects the minimum count of a piece between 1 and 1000 until the vocabulary size is
    within 1% of the target. If no size is, returns the closest vocabulary.

    Source: tensor2tensor text_encoder.py:SubwordTextEncoder.build_to_target_size.

    Args:
        lines: Sentences.
        target_size: Desired number of pieces.
        max_bytes: Maximum size of the text in UTF-8; longer text is sampled.
    """
    counts: Counter[str] = Counter()
    for line in sample_by_size(lines, max_bytes):
        counts.update(split_words(line))
    low, high = 1, _LARGEST_MIN_COUNT
    vocabularies: list[list[str]] = []
    while True:
        min_count = (low + high) // 2
        pieces = _choose_pieces(counts, min_count)
        vocabularies.append(pieces)
        close_enough = abs(len(pieces) - target_size) * 100 < target_size
        if close_enough or low >= high or min_count < 2:
            break
        if len(pieces) > target_size:
            low = min_count + 1
        else:
            high = min_count - 1
    # min() breaks ties in favor of the earlier vocabulary, like tensor2tensor.
    return min(vocabularies, key=lambda pieces: abs(len(pieces) - target_size))


def _choose_pieces(counts: Mapping[str, int], min_count: int) -> list[str]:
    """Returns the vocabulary whose pieces occur at least `min_count` times.

    The first vocabulary contains the single characters. Each iteration splits the words
    into pieces of the current vocabulary; every substring that begins at the start of
    a piece is a candidate for the next vocabulary.

    Source: tensor2tensor text_encoder.py:SubwordTextEncoder.build_from_token_counts.
    """
    words = [*counts, *(piece.removesuffix("_") for piece in RESERVED_PIECES)]
    # The file has one piece per line, so no piece may contain a line end.
    alphabet = ESCAPE_CHARACTERS.union(*words) - {"\n"}
    spelled = [(spell_word(word, alphabet), count) for word, count in counts.items()]
    pieces = set(alphabet)
    ordered: list[str] = []
    for _ in range(_ITERATIONS):
        candidates: Counter[str] = Counter()
        longest = max(map(len, pieces))
        for word, count in spelled:
            for start in piece_starts(word, pieces, longest):
                end = min(len(word) + 1, start + MAX_PIECE_LENGTH)
                for stop in range(start + 1, end):
                    candidates[word[start:stop]] += count
        ordered = [*RESERVED_PIECES, *_choose_frequent(candidates, alphabet, min_count)]
        pieces = set(ordered)
    return ordered


def _choose_frequent(
    candidates: Counter[str], alphabet: frozenset[str], min_count: int
) -> list[str]:
    """Returns the alphabet and the frequent candidates, in descending order of count.

    Chooses candidates from longest to shortest and subtracts the count of each chosen
    one from the counts of its prefixes.
    """
    by_length: dict[int, list[str]] = {}
    for string, count in candidates.items():
        if count >= min_count:
            by_length.setdefault(len(string), []).append(string)
    chosen: list[tuple[int, str]] = []
    for length in sorted(by_length, reverse=True):
        for string in by_length[length]:
            count = candidates[string]
            if count < min_count:
                continue
            if string not in alphabet:
                chosen.append((count, string))
            for stop in range(1, length):
                candidates[string[:stop]] -= count
    chosen += ((candidates[character], character) for character in alphabet)
    return [string for _, string in sorted(chosen, reverse=True)]
