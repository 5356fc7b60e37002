"""Tests of the list of faults and of the tool that runs the tests on each fault."""

import ast
import subprocess
from collections import Counter

import pytest
from code_faults.fault_list import FAULTS_FILE, check_faults, read_faults

from t2t_repro.system.errors import UserError
from tests import run_command

ROOMS = (
    *("layers", "models", "decoding", "batches", "data", "training", "runs"),
    *("translation", "tokenizers", "interop"),
)
FAULTS = read_faults(FAULTS_FILE)
CODE = """def larger(a, b):
    return a if a > b else b


def half(a):
    return a / 2


GREETING = "good morning"
"""
TESTS = """import pytest

from package import code


@pytest.mark.parametrize("pair", [(1, 2), (2, 1)], ids=["up - [1]", "down"])
def test_the_larger_of_two(pair):
    assert code.larger(*pair) == 2


@pytest.mark.medium
def test_a_half():
    assert code.half(8) == 4
"""
BROKEN = """from package import code


def test_always_fails():
    assert code.half(8) == 5
"""
LIST = """package:
  - name: smaller
    fault: The smaller number is returned.
    file: package/code.py
    old: a > b
    new: a < b
    tests: [tests/test_code.py]
  - name: third
    fault: A third is returned.
    file: package/code.py
    old: a / 2
    new: a / 3
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
  - name: fails_anyway
    fault: The test also fails without the fault.
    file: package/code.py
    old: return a / 2
    new: return a / 4
    tests: [tests/test_broken.py]
"""
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


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A project with one module and a list of its faults."""
    # Most of a run would be the import of plugins, which these tests do not need.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    folder = tmp_path / "project"
    contents = {
        "package/__init__.py": "",
        "package/code.py": CODE,
        "tests/test_code.py": TESTS,
        "tests/test_broken.py": BROKEN,
        "setup.cfg": SETTINGS,
        "faults.yaml": LIST,
    }
    for name, text in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    subprocess.run(["git", "-C", str(folder), "add", "."], check=True)
    return folder


def run(checkout, output, *flags):
    return run_command.run(
        "tools/run_code_faults.py",
        *("--tree", str(checkout), "--faults", str(checkout / "faults.yaml")),
        *("--output", str(output), *flags),
    )


@pytest.mark.medium
def test_caught_and_escaped_faults_are_skipped_in_a_second_run(checkout, tmp_path):
    output = tmp_path / "outcomes.tsv"
    result = run(checkout, output)
    assert result.status == 1, result.err
    header, *rows = (line.split("\t") for line in output.read_text().splitlines())
    assert header == ["room", "fault", "outcome", "seconds", "failed test"]
    larger, half = (
        f"tests/test_code.py::test_{name}" for name in ("the_larger_of_two", "a_half")
    )
    assert [(row[1], row[2]) for row in rows] == [
        ("smaller", "caught"),
        ("third", "caught"),
        ("evening", "escaped"),
        ("unknown_name", "error"),
        ("fails_anyway", "error"),
    ]
    assert rows[0][4].startswith(larger)
    assert [row[4] for row in rows[1:]] == [
        half,
        "",
        "pytest exited with status 2: tests/test_code.py",
        "tests/test_broken.py::test_always_fails does not pass without the fault",
    ]
    assert result.out.splitlines()[5:7] == [
        "package: 2 of 5 caught",
        "escaped: evening: The greeting is wrong.",
    ]
    assert (checkout / "package" / "code.py").read_text() == CODE

    before = output.read_text()
    again = run(checkout, output, "--only", "smaller,evening")
    assert again.status == 1
    assert again.out.splitlines() == [
        f"2 of 2 faults have an outcome in {output}",
        "package: 1 of 2 caught",
        "escaped: evening: The greeting is wrong.",
    ]
    assert output.read_text() == before
    assert run(checkout, output, "--only", "third").status == 0


@pytest.mark.medium
def test_kills_tests_at_the_timeout(checkout, tmp_path):
    (checkout / "tests" / "test_code.py").write_text("while True:\n    pass\n")
    output = tmp_path / "outcomes.tsv"
    assert run(checkout, output, "--only", "third", "--timeout", "1").status == 1
    row = output.read_text().splitlines()[1].split("\t")
    assert row[2] == "error"
    assert row[4] == "pytest exited with status -9: killed after 1 s (--timeout)"


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("old: a / 2", "old: a / 5", "'a / 5' must occur once in package/code.py, but"),
        ("old: a / 2", "old: return", "occurs 2 times"),
        ("tests/test_code.py", "tests/test_none.py", "test_none.py does not exist"),
        ("  - name", "  - title", "is not a list of faults"),
        ("package:", "package: [", "is not a list of faults"),
    ],
)
def test_rejects_a_list_that_does_not_match_the_code(checkout, before, after, words):
    (checkout / "faults.yaml").write_text(LIST.replace(before, after))
    with pytest.raises(UserError, match=words):
        check_faults(read_faults(checkout / "faults.yaml"), checkout)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--only", "forth"), "--only: unknown fault forth"),
        (("--tree", "/"), "/package/code.py does not exist"),
    ],
)
def test_reports_a_wrong_flag_in_one_line(checkout, tmp_path, flags, words):
    result = run(checkout, tmp_path / "outcomes.tsv", *flags)
    assert run_command.is_one_clear_line(result)
    assert words in result.err


def test_does_not_overwrite_another_file(checkout, tmp_path):
    output = tmp_path / "outcomes.tsv"
    output.write_text("room\tfault\n")
    result = run(checkout, output)
    assert run_command.is_one_clear_line(result)
    assert "outcomes.tsv is not a table of outcomes" in result.err
    assert output.read_text() == "room\tfault\n"
