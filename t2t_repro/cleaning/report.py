"""Report of a cleaning: pairs dropped and repaired by each rule, with examples."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from t2t_repro.cleaning.rules import CODES

Example = tuple[str, str, str]
"""Place, and either source and target, or the text before and after a repair."""

_MOST_EXAMPLES = 3
_WIDTH = 60  # Characters of a text in an example.


@dataclass
class Report:
    """Counts and first examples of each rule.

    Attributes:
        kept: Number of pairs of each split.
        dropped: Number of pairs that each rule dropped.
        repaired: Number of pairs that each rule changed.
        examples: First pairs that a rule dropped or changed, by rule.
        notes: Lines for the user, such as rules that could not be applied.
    """

    kept: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[Example]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, counts: Counter[str], rule: str, example: Example) -> None:
        """Counts a pair that a rule dropped or repaired."""
        counts[rule] += 1
        examples = self.examples.setdefault(rule, [])
        if len(examples) < _MOST_EXAMPLES:
            examples.append(example)

    def merge(self, other: Report) -> None:
        """Adds the repairs of later pairs."""
        self.repaired += other.repaired
        for rule, examples in other.examples.items():
            first = self.examples.get(rule, []) + examples
            self.examples[rule] = first[:_MOST_EXAMPLES]

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Report:
        """Returns the report of a JSON object."""
        counts = {name: Counter(values[name]) for name in ("kept", "dropped")}
        counts["repaired"] = Counter(values["repaired"])
        return cls(**counts, examples=values["examples"], notes=values["notes"])

    def to_dict(self) -> dict[str, Any]:
        """Returns the report as a JSON object."""
        return dict(vars(self))

    def format(self) -> str:
        """Returns the report as a table, with the examples below each rule."""
        lines = [f"{'rule':<20}{'dropped':>12}{'repaired':>12}"]
        for rule, examples in sorted(self.examples.items(), key=_order):
            counts = self.dropped[rule], self.repaired[rule]
            lines.append(f"{rule:<20}{counts[0]:>12,}{counts[1]:>12,}")
            lines += [
                f"    {place}: {_shorten(first)} | {_shorten(second)}"
                for place, first, second in examples
            ]
        kept = ", ".join(f"{count:,} {split}" for split, count in self.kept.items())
        lines.append(f"{self.dropped.total():,} pairs dropped; kept: {kept}")
        return "\n".join([*lines, *self.notes])


def _order(item: tuple[str, object]) -> int:
    return CODES[item[0]]


def _shorten(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."
