"""Windows of lines, which are sorted by length and translated together."""

from collections.abc import Iterable, Iterator

# Maximum number of characters of a window, which limits memory if lines are very long.
_MOST_WINDOW_CHARACTERS = 1 << 22


def windows(lines: Iterable[str], most_lines: int) -> Iterator[list[str]]:
    """Splits a stream of lines into lists of `most_lines`, or fewer if lines are long.

    Each list depends only on the lines after the previous list.
    """
    window: list[str] = []
    characters = 0
    for line in lines:
        window.append(line)
        characters += len(line)
        if len(window) == most_lines or characters >= _MOST_WINDOW_CHARACTERS:
            yield window
            window, characters = [], 0
    if window:
        yield window
