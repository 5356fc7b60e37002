"""Each guarantee in docs/promises.md refers to an existing test."""

import ast
import re

from tests.run_command import ROOT

PAGE = ROOT / "docs" / "promises.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def functions(path):
    """Returns the names of the functions that a file defines."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_named_tests_exist():
    named = NAMED.findall(PAGE.read_text(encoding="utf-8"))
    assert len(named) > 40
    missing = [
        f"{path}::{name}"
        for path, name in named
        if not (ROOT / path).is_file() or name not in functions(path)
    ]
    assert missing == []


def test_every_row_refers_to_a_test_or_a_command():
    rows = [row for row in PAGE.read_text().splitlines() if row.startswith("| ")]
    rows = [row for row in rows if not row.startswith("| guarantee |")]
    assert rows
    for row in rows:
        evidence = row.split(" | ")[-1]
        assert NAMED.search(evidence) or "`python " in evidence, row


def test_named_tools_exist():
    names = re.findall(r"`(?:python|bash) (tools/[\w/]+\.\w+)", PAGE.read_text())
    assert names
    assert all((ROOT / name).is_file() for name in names)
