"""Recognises text that another program has preprocessed: SGML, Moses tokens, BPE.

A problem needs raw text. The vocabulary encodes it as it is, and BLEU tokenizes
translations and references itself. Preprocessed text trains without an error, but its
score cannot be compared with any other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

# The share of a file's lines, and their number, from which marks are reported. Raw text
# quotes a tag or an entity now and then. No line of Multi30k, Tatoeba and newstest has
# a mark, but after Moses' tokenizer 8 to 43 % of newstest's lines have one, and 2 % of
# Multi30k's English ones. BPE marks nearly every line, SGML every sentence.
_LEAST_SHARE = 0.01
_LEAST_LINES = 3
_EXAMPLE_CHARACTERS = 60


@dataclass(frozen=True)
class _Kind:
    """A kind of preprocessing: its name, the marks that it leaves, and what to do."""

    name: str
    marks: re.Pattern[str]
    advice: str


_KINDS = (
    # The format of WMT's test sets up to 2020.
    _Kind(
        "SGML markup",
        re.compile(r"</?(?:seg|doc|srcset|refset|tstset)[ >]", re.IGNORECASE),
        "keep only the text between <seg ...> and </seg>, one segment a line "
        "(sacrebleu --echo extracts WMT's test sets)",
    ),
    # Whole tokens only: raw text of the web has entities, but attached to words. Moses'
    # tokenizer.perl and, with ##AT##, the corpora of Luong et al. 2015.
    _Kind(
        "tokens of Moses' tokenizer",
        re.compile(
            r"(?<!\S)(?:@[-,.:/]@|&quot;|&apos;(?:s|t|d|m|re|ve|ll)?|##AT##-##AT##)(?!\S)"
        ),
        "take the untokenized corpus, or detokenize it (sacremoses -l LANGUAGE "
        "detokenize)",
    ),
    _Kind(
        "BPE marks of subword-nmt",
        re.compile(r"\S@@(?!\S)"),
        "take the corpus without BPE, or join the subwords (sed -E 's/@@( |$)//g')",
    ),
)


@dataclass
class LineMarks:
    """Counts the lines of one side of a split, and those that have marks."""

    lines: int = 0
    marked: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, line: str) -> None:
        """Counts a line."""
        self.lines += 1
        # Every mark has one of these characters. To look for them takes a tenth of the
        # time of the patterns.
        if not ("@" in line or "<" in line or "&" in line or "#" in line):
            return
        for kind in _KINDS:
            if match := kind.marks.search(line):
                self.marked[kind.name] += 1
                start = max(0, match.start() - _EXAMPLE_CHARACTERS // 2)
                example = line[start : start + _EXAMPLE_CHARACTERS]
                self.examples.setdefault(kind.name, example)


def find_preprocessing(sides: Sequence[tuple[str, LineMarks]]) -> list[str]:
    """Describes each kind of preprocessing that a corpus shows, in one line.

    Args:
        sides: of each side of each split, a name such as "train.en" and its counts.
    """
    found = []
    for kind in _KINDS:
        marked = [
            (name, side)
            for name, side in sides
            if side.marked[kind.name] >= max(_LEAST_LINES, _LEAST_SHARE * side.lines)
        ]
        if marked:
            where = ", ".join(
                f"{side.marked[kind.name]:,} of {side.lines:,} lines of {name}"
                for name, side in marked
            )
            example = marked[0][1].examples[kind.name]
            found.append(
                f"{kind.name} in {where}, such as {example!r}; text must be raw: "
                f"{kind.advice}"
            )
    return found
