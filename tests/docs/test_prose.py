"""The prose of code and pages avoids the phrases in tests/docs/phrases.tsv.

A phrase is not always wrong, so the test limits how many there are per 1,000 words.
`python -m tests.docs.test_prose [FOLDER]` lists all matches below a folder.
"""

import ast
import csv
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from tests.run_command import ROOT

MOST_PER_THOUSAND = 2.0
PHRASES = ROOT / "tests" / "docs" / "phrases.tsv"
FOLDERS = ("colab", "docs", "t2t_repro", "tests", "tools")
# Functions whose string arguments are messages or help texts for users.
MESSAGE_FUNCTIONS = re.compile(
    r"\w*(?:Error|Parser|Warning|setting)|add\w*|log|print|say|warn"
)
CODE = re.compile(r"``.+?``|`[^`]*`|\]\([^)]*\)|https?://\S+")

Prose = Iterator[tuple[int, str]]


def read_phrases() -> list[dict[str, str]]:
    """Returns the rows of the table: name, pattern, example, write instead."""
    with PHRASES.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


PATTERNS = {
    row["name"]: re.compile(row["pattern"], re.IGNORECASE | re.MULTILINE)
    for row in read_phrases()
}


def python_prose(source: str) -> Prose:
    """Yields line and text of each docstring, message and block of comments."""
    tree = ast.parse(source)
    strings = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            strings |= string_constants([node.value])
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            if MESSAGE_FUNCTIONS.fullmatch(name):
                strings |= string_constants(ast.walk(node))
    yield from sorted(strings)
    yield from comments(source)


def string_constants(nodes: Iterable[ast.AST]) -> set[tuple[int, str]]:
    """Returns line and text of each string constant that contains a space."""
    constants = [node for node in nodes if isinstance(node, ast.Constant)]
    strings = [node for node in constants if isinstance(node.value, str)]
    return {(node.lineno, node.value) for node in strings if " " in node.value}


def comments(source: str) -> Prose:
    """Yields line and text of comments; adjacent lines form one text."""
    first, last, lines = 0, 0, []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        line = token.start[0]
        if line != last + 1:
            yield first, "\n".join(lines)
            first, lines = line, []
        lines.append(token.string.lstrip("#: "))
        last = line
    yield first, "\n".join(lines)


def markdown_prose(page: str) -> Prose:
    """Yields line and text of each paragraph outside of code blocks."""
    without_code = re.sub(
        r"^ *(```+).*?^ *\1$",
        lambda block: "\n" * block[0].count("\n"),
        page,
        flags=re.MULTILINE | re.DOTALL,
    )
    for match in re.finditer(r"(?:.+\n?)+", without_code):
        yield without_code.count("\n", 0, match.start()) + 1, match[0]


READERS: dict[str, Callable[[str], Prose]] = {
    ".py": python_prose,
    ".md": markdown_prose,
}


def count_phrases(root: Path, suffix: str) -> tuple[int, list[str]]:
    """Returns the number of words below a folder, and a line for each phrase."""
    words, matches = 0, []
    paths = [path for folder in FOLDERS for path in (root / folder).rglob("*" + suffix)]
    for path in sorted([*root.glob("*" + suffix), *paths]):
        for line, text in READERS[suffix](path.read_text(encoding="utf-8")):
            prose = CODE.sub(" ", text)
            words += len(prose.split())
            for name, pattern in PATTERNS.items():
                for match in pattern.finditer(prose):
                    at = line + prose.count("\n", 0, match.start())
                    where = f"{path.relative_to(root)}:{at}"
                    matches.append(f"{where}: {match[0].strip()!r} ({name})")
    return words, matches


@pytest.mark.parametrize("suffix", READERS)
def test_few_unidiomatic_phrases(suffix):
    words, matches = count_phrases(ROOT, suffix)
    assert words > 10_000
    allowed = MOST_PER_THOUSAND * words / 1000
    assert len(matches) <= allowed, "\n".join(matches[:100])


@pytest.mark.parametrize("row", read_phrases(), ids=lambda row: row["name"])
def test_pattern_matches_its_example(row):
    assert PATTERNS[row["name"]].search(row["example"])


@pytest.mark.parametrize(
    ("read", "text", "expected"),
    [
        (python_prose, '"""Two words."""\n', ["Two words."]),
        (python_prose, "x = 1  # Why so.\n", ["Why so."]),
        (python_prose, "# One\n# two.\n\n# Three.\n", ["One\ntwo.", "Three."]),
        (python_prose, 'raise UserError(f"a {b} c")\n', [" c", "a "]),
        (python_prose, 'x = "not a message"\n', []),
        (markdown_prose, "One\n\n```bash\ncode\n```\nTwo\n", ["One\n", "Two\n"]),
    ],
)
def test_prose_is_separated_from_code(read, text, expected):
    assert [part for _, part in read(text) if part] == expected


if __name__ == "__main__":
    for ending in READERS:
        count, lines = count_phrases(Path([*sys.argv, "."][1]), ending)
        print(*lines, sep="\n")
        print(f"{ending}: {1000 * len(lines) / count:.1f} per 1,000 of {count:,} words")
