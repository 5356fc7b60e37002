"""Detects preprocessed text: SGML markup, Moses tokens, BPE.

A problem needs raw text, because the vocabulary does not undo preprocessing and BLEU
does its own tokenization. Training on preprocessed text succeeds, but the scores are
not comparable.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

# Thresholds for a report, because raw text occasionally quotes a tag or an entity. No
# line of Multi30k, Tatoeba or newstest contains a mark. Moses' tokenizer adds marks to
# 8 to 43 % of newstest's lines and 2 % of Multi30k's English lines, BPE to nearly every
# line, and SGML to every sentence.
_LEAST_FRACTION = 0.01
_LEAST_LINES = 3
_EXAMPLE_CHARACTERS = 60


@dataclass(frozen=True)
class _Kind:
    """Kind of preprocessing: its name, a pattern of its marks, and advice."""

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
    # Marks of Moses' tokenizer.perl and, with ##AT##, of the corpora of Luong et al.
    # 2015. They must be whole tokens, because raw web text has entities within words.
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
    """Counts of lines and of marked lines in one side of a split.

    Attributes:
        lines: Number of lines.
        marked: Number of lines with marks of each kind of preprocessing.
        examples: Excerpt of the first marked line of each kind.
    """

    lines: int = 0
    marked: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, line: str) -> None:
        """Counts a line."""
        self.lines += 1
        # Every mark contains one of these characters. Searching for them takes a tenth
        # of the time of the patterns.
        if not ("@" in line or "<" in line or "&" in line or "#" in line):
            return
        for kind in _KINDS:
            if match := kind.marks.search(line):
                self.marked[kind.name] += 1
                start = max(0, match.start() - _EXAMPLE_CHARACTERS // 2)
                example = line[start : start + _EXAMPLE_CHARACTERS]
                self.examples.setdefault(kind.name, example)


def find_preprocessing(sides: Sequence[tuple[str, LineMarks]]) -> list[str]:
    """Returns one line for each kind of preprocessing detected in a corpus.

    Args:
        sides: Name, such as "train.en", and counts of each side of each split.
    """
    findings = []
    for kind in _KINDS:
        marked = [
            (name, side)
            for name, side in sides
            if side.marked[kind.name] >= max(_LEAST_LINES, _LEAST_FRACTION * side.lines)
        ]
        if marked:
            where = ", ".join(
                f"{side.marked[kind.name]:,} of {side.lines:,} lines of {name}"
                for name, side in marked
            )
            example = marked[0][1].examples[kind.name]
            findings.append(
                f"{kind.name} in {where}, such as {example!r}; text must be raw: "
                f"{kind.advice}"
            )
    return findings
