"""Uniform samples of the lines of a large text, the same in every process."""

import random
from collections.abc import Iterable, Iterator

_SEED = 20170612


def sample_by_size(lines: Iterable[str], max_bytes: int) -> Iterator[str]:
    """Returns a uniform sample of the lines, at most `max_bytes` in UTF-8, in order.

    Draws a random number for each line and keeps the lines below a threshold, which is
    halved whenever the sample is too large. Taking every n-th line would be wrong,
    because the languages alternate.
    """
    generator = random.Random(_SEED)
    threshold = 1.0
    sample: list[tuple[float, str, int]] = []
    total = 0
    for line in lines:
        draw = generator.random()
        if draw >= threshold:
            continue
        sample.append((draw, line, len(line.encode())))
        total += sample[-1][2]
        while total > max_bytes:
            threshold /= 2
            sample = [entry for entry in sample if entry[0] < threshold]
            total = sum(size for _, _, size in sample)
    return (line for _, line, _ in sample)


def sample_by_number(lines: Iterable[str], max_lines: int) -> Iterator[bytes]:
    """Yields a uniform sample of at most `max_lines` lines, in UTF-8.

    All lines of a shorter text are yielded in order. The sample is in memory, and each
    line is released when it is yielded.

    Source: Vitter 1985, "Random Sampling with a Reservoir", algorithm R.
    """
    generator = random.Random(_SEED)
    sample: list[bytes] = []
    for number, line in enumerate(lines, 1):
        if number <= max_lines:
            sample.append(line.encode())
        elif (place := int(generator.random() * number)) < max_lines:
            sample[place] = line.encode()
    sample.reverse()
    while sample:
        yield sample.pop()
