"""Choosing word pieces from text, by tensor2tensor's algorithm."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from t2t_repro.tokenizers.word_pieces import (
    ESCAPE_CHARACTERS,
    RESERVED_PIECES,
    spell_word,
    split_words,
)

# Text the pieces are counted in: tensor2tensor reads about 1e6 bytes of each
# language's file (generator_utils.py:get_or_generate_vocab_inner).
MAX_BYTES = 2_000_000
# In characters; the work on a word is quadratic in it
# (text_problems.py:Text2TextProblem.max_subtoken_length).
MAX_PIECE_LENGTH = 200
_ITERATIONS = 4
_LARGEST_MIN_COUNT = 1000
_SEED = 20170612


def build_word_pieces(
    lines: Iterable[str], target_size: int, max_bytes: int = MAX_BYTES
) -> list[str]:
    """Returns a vocabulary of about `target_size` pieces, special ones first.

    How often a piece must occur is found by bisection between 1 and 1000, until the
    size is within 1% of the target, or else is the nearest that was met.

    Source: tensor2tensor text_encoder.py:SubwordTextEncoder.build_to_target_size.

    Args:
        lines: text, one sentence each.
        target_size: how many pieces are wanted.
        max_bytes: of UTF-8; longer text is sampled evenly.
    """
    counts: Counter[str] = Counter()
    for line in sample_lines(lines, max_bytes):
        counts.update(split_words(line))
    low, high = 1, _LARGEST_MIN_COUNT
    sizes_tried: list[list[str]] = []
    while True:
        min_count = (low + high) // 2
        pieces = _pieces_of(counts, min_count)
        sizes_tried.append(pieces)
        close_enough = abs(len(pieces) - target_size) * 100 < target_size
        if close_enough or low >= high or min_count < 2:
            break
        if len(pieces) > target_size:
            low = min_count + 1
        else:
            high = min_count - 1
    # Of two that are equally near, the one met first.
    return min(sizes_tried, key=lambda pieces: abs(len(pieces) - target_size))


def sample_lines(lines: Iterable[str], max_bytes: int) -> Iterator[str]:
    """Returns an even sample of the lines, at most `max_bytes` of UTF-8 in all.

    Each line draws a number, and those below a threshold stay, which is halved whenever
    too much has gathered. (Every n-th line would not do: the languages take turns.)
    """
    generator = random.Random(_SEED)
    threshold = 1.0
    kept: list[tuple[float, str, int]] = []
    total = 0
    for line in lines:
        draw = generator.random()
        if draw >= threshold:
            continue
        kept.append((draw, line, len(line.encode())))
        total += kept[-1][2]
        while total > max_bytes:
            threshold /= 2
            kept = [entry for entry in kept if entry[0] < threshold]
            total = sum(size for _, _, size in kept)
    return (line for _, line, _ in kept)


def _pieces_of(counts: Mapping[str, int], min_count: int) -> list[str]:
    """Returns the vocabulary whose pieces occur at least `min_count` times.

    Starting from single characters, the words are cut into the pieces so far; every
    string that begins where such a piece begins is a candidate for the next round.

    Source: tensor2tensor text_encoder.py:SubwordTextEncoder.build_from_token_counts.
    """
    words = [*counts, *(piece.removesuffix("_") for piece in RESERVED_PIECES)]
    # A line end could not stand in the file, which has one piece per line.
    alphabet = ESCAPE_CHARACTERS.union(*words) - {"\n"}
    spelled = [(spell_word(word, alphabet), count) for word, count in counts.items()]
    pieces = set(alphabet)
    ordered: list[str] = []
    for _ in range(_ITERATIONS):
        candidates: Counter[str] = Counter()
        longest = max(map(len, pieces))
        for word, count in spelled:
            for start in _piece_starts(word, pieces, longest):
                end = min(len(word) + 1, start + MAX_PIECE_LENGTH)
                for stop in range(start + 1, end):
                    candidates[word[start:stop]] += count
        ordered = [*RESERVED_PIECES, *_frequent(candidates, alphabet, min_count)]
        pieces = set(ordered)
    return ordered


def _piece_starts(word: str, pieces: set[str], longest: int) -> Iterator[int]:
    """Yields where the pieces of a spelled word begin, each the longest possible."""
    start = 0
    while start < len(word):
        yield start
        stop = min(len(word), start + longest)
        while word[start:stop] not in pieces:
            stop -= 1
        start = stop


def _frequent(
    candidates: Counter[str], alphabet: frozenset[str], min_count: int
) -> list[str]:
    """Returns the alphabet and the frequent candidates, most frequent first.

    The longest are chosen first, and take their occurrences from their own beginnings.
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
