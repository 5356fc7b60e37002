"""Tests of the list of faults and of the tool that runs the tests on each fault."""

import ast
import subprocess
from collections import Counter

import draw_code_faults
import pytest
from code_faults.fault_list import FAULTS_FILE, check_faults, read_faults
from code_faults.mutations import find_mutations

from tests import run_command

ROOMS = (
    *("layers", "models", "decoding", "batches", "data", "training", "runs"),
    *("translation", "tokenizers", "interop"),
)
FAULTS = read_faults(FAULTS_FILE)
CODE = """def larger(a, b):
    return a if a > b else b


GREETING = "good morning"
"""
TESTS = """import pytest

from package import code


@pytest.mark.medium
@pytest.mark.parametrize("pair", [(1, 2), (2, 1)], ids=["up - [1]", "down"])
def test_the_larger_of_two(pair):
    assert code.larger(*pair) == 2
"""
LIST = """package:
  - name: smaller
    fault: The smaller number is returned.
    file: package/code.py
    old: a > b
    new: a < b
    tests: [tests/test_code.py]
  - name: evening
    fault: The greeting is wrong.
    file: package/code.py
    old: good morning
    new: good evening
    tests: [tests/test_code.py]
  - name: unknown_name
    fault: The module cannot be imported.
    file: package/code.py
    old: '"good morning"'
    new: good_morning
    tests: [tests/test_code.py]
"""
MUTATED = '''def half_or_less(n: int = 7) -> int:
    """Returns 8 at most."""
    if n > 8 and not n % 2:
        print("more than", 8)
        raise ValueError(f"{n + 1}")
    sink.append(n)
    return n // 2
    return None
'''
SETTINGS = """[tool:pytest]
markers =
    medium: longer
    slow: longest
"""


def test_the_list_has_four_faults_per_room():
    assert Counter(fault.room for fault in FAULTS) == dict.fromkeys(ROOMS, 4)
    assert len({fault.name for fault in FAULTS}) == 40


def test_all_faults_apply_and_their_tests_exist():
    check_faults(FAULTS, run_command.ROOT)


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_a_fault_changes_valid_code_of_the_package(fault):
    text = (run_command.ROOT / fault.file).read_text(encoding="utf-8")
    changed = ast.parse(fault.apply(text))
    compile(changed, fault.file, "exec")
    assert ast.dump(changed) != ast.dump(ast.parse(text))
    # The code of a fault may move to another room, but not out of the package.
    assert fault.file.startswith("t2t_repro/")


@pytest.mark.medium
def test_faults_are_caught_escape_or_prevent_the_tests(tmp_path, monkeypatch):
    # Most of a run would be the import of plugins, which these tests do not need.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    project, output = tmp_path / "project", tmp_path / "outcomes.tsv"
    contents = {
        "package/__init__.py": "",
        "package/code.py": CODE,
        "tests/test_code.py": TESTS,
        "setup.cfg": SETTINGS,
        "faults.yaml": LIST,
    }
    for name, text in contents.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    subprocess.run(["git", "-C", str(project), "add", "."], check=True)
    flags = ("--tree", str(project), "--faults", str(project / "faults.yaml"))
    result = run_command.run(
        "tools/run_code_faults.py", *flags, "--output", str(output)
    )
    assert result.status == 1, result.err
    _, *rows = (line.split("\t") for line in output.read_text().splitlines())
    assert [row[1:3] for row in rows] == [
        ["smaller", "caught"],
        ["evening", "escaped"],
        ["unknown_name", "error"],
    ]
    assert rows[0][4].startswith("tests/test_code.py::test_the_larger_of_two")
    assert "package: 1 of 3 caught" in result.out
    assert (project / "package" / "code.py").read_text() == CODE


def test_mutations_change_each_place_with_behavior_once():
    found = [(each.line, each.before, each.after) for each in find_mutations(MUTATED)]
    assert found == [
        (1, "7", "8"),
        (3, "n > 8 and not n % 2", "(not (n > 8 and (not n % 2)))"),
        (3, "n > 8 and not n % 2", "(n > 8 or not n % 2)"),
        (3, "n > 8", "(n >= 8)"),
        (3, "8", "9"),
        (3, "not n % 2", "(n % 2)"),
        (3, "n % 2", "(n // 2)"),
        (3, "2", "3"),
        (6, "sink.append(n)", "pass"),
        (7, "return n // 2", "return"),
        (7, "n // 2", "(n * 2)"),
        (7, "2", "3"),
    ]


def test_a_mutation_replaces_lines_that_occur_once():
    text = "a = [\n    1,\n    1,\n]\n"
    first, second = find_mutations(text)
    assert (first.old, first.new) == ("a = [\n    1,\n", "a = [\n    2,\n")
    assert text.replace(second.old, second.new) == "a = [\n    1,\n    2,\n]\n"


def test_faults_drawn_with_one_seed_are_the_same_and_apply(tmp_path):
    lists = []
    for seed in (1, 1, 2):
        path = tmp_path / "drawn.yaml"
        flags = ["--count", "20", "--rooms", "runs", "--seed", str(seed)]
        draw_code_faults.main(["--output", str(path), *flags])
        lists.append(read_faults(path))
    assert lists[0] == lists[1] != lists[2]
    check_faults(lists[0], run_command.ROOT)
    for fault in lists[0]:
        test_a_fault_changes_valid_code_of_the_package(fault)
