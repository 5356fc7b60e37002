"""Rules for imports, checked in the source of every module.

A subpackage ("room") imports only from lower levels ("floors"). Rooms of the same floor
do not import each other; commands do not import each other; there are no cycles.
"""

from __future__ import annotations

import ast
import functools
import graphlib
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "t2t_repro"

# Rooms of each floor, from the bottom. Modules that are not listed are commands, which
# are at the top.
FLOORS: tuple[frozenset[str], ...] = (
    frozenset({"system"}),
    frozenset({"formats"}),
    frozenset({"layers", "decoding", "hparams", "problems", "tokenizers"}),
    frozenset({"models", "data", "texts", "cleaning"}),
    # `fast` is above `models`, so lower floors cannot use optimized implementations.
    frozenset({"fast", "batches", "runs"}),
    frozenset({"translation"}),
    frozenset({"analysis", "evaluation", "interop"}),
    frozenset({"live_page", "training"}),
    frozenset({"hub"}),
    frozenset({"command_line", "serving"}),
)
TOP = len(FLOORS)


@functools.cache
def modules() -> dict[str, Path]:
    """Returns the path of each module, by its dotted name without the package."""
    paths = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        paths[".".join(parts).removesuffix("__init__").rstrip(".")] = path
    del paths[""]  # The package itself, which imports nothing.
    return paths


def imports(path: Path) -> set[str]:
    """Returns the names that a module imports from the package."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: use absolute imports"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    prefix = "t2t_repro."
    return {name.removeprefix(prefix) for name in names if name.startswith(prefix)}


def resolved(name: str) -> str:
    """Returns the module of an imported name: `hparams` for `hparams.HParams`.

    Modules of a subpackage are returned unchanged: `hparams.sets`.
    """
    while name and name not in modules():
        name = name.rpartition(".")[0]
    return name


@functools.cache
def graph() -> dict[str, set[str]]:
    """Returns the imported modules of the package for each module."""
    return {
        name: {resolved(imported) for imported in imports(path)} - {"", name}
        for name, path in modules().items()
    }


def room(module: str) -> str:
    return module.partition(".")[0]


def floor(name: str) -> int:
    return next((level for level, rooms in enumerate(FLOORS) if name in rooms), TOP)


def test_imports_are_from_lower_floors():
    violations = []
    for module, imported in graph().items():
        here = room(module)
        for there in {room(name) for name in imported} - {here}:
            if floor(there) >= floor(here):
                violations.append(f"{module} imports {there}")
    assert violations == []


def test_imports_of_rooms_have_no_cycle():
    rooms: dict[str, set[str]] = {}
    for module, imported in graph().items():
        here = room(module)
        rooms.setdefault(here, set()).update({room(name) for name in imported} - {here})
    assert_no_cycle(rooms)


def test_imports_of_modules_have_no_cycle():
    assert_no_cycle(graph())


def assert_no_cycle(edges: dict[str, set[str]]) -> None:
    try:
        graphlib.TopologicalSorter(edges).prepare()
    except graphlib.CycleError as error:
        pytest.fail("cycle: " + " -> ".join(error.args[1]), pytrace=False)


@pytest.mark.parametrize("name", ["layers", "decoding"])
def test_layers_and_decoding_do_not_use_hyper_parameters_or_flags(name):
    for module, path in modules().items():
        if room(module) == name:
            text = path.read_text(encoding="utf-8")
            assert "hparams" not in text.lower(), path
            assert "argparse" not in text, path


MODEL_ROOMS = {"layers", "models", "fast", "translation", "serving"}
CONTAINERS = {"dict", "list", "set", "defaultdict", "OrderedDict", "WeakSet"}
CONTAINERS |= {"WeakKeyDictionary", "WeakValueDictionary"}


def is_registry(statement: ast.stmt) -> bool:
    """Returns whether a statement creates an empty container or one in a ContextVar."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or not statement.value:
        return False
    text, value = ast.unparse(statement), statement.value
    if isinstance(value, ast.Call):
        kind = ast.unparse(value.func).rpartition(".")[2]
        in_context = kind == "ContextVar" and re.search("dict|Mapping", text)
        return bool(in_context) or (kind in CONTAINERS and not value.args)
    return ast.unparse(value) in ("{}", "[]")


def test_no_module_stores_the_state_of_models():
    """The state of a model must be in attributes of its layers."""
    violations = []
    for module, path in modules().items():
        if room(module) not in MODEL_ROOMS:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        violations += [f"{path}:{n.lineno}" for n in tree.body if is_registry(n)]
        violations += [
            f"{path}:{node.lineno}: id"
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and node.id == "id"
        ]
    assert violations == []


@pytest.mark.parametrize(
    "text",
    [
        "_products: dict[tuple[int, ...], Product] = {}",
        "known = weakref.WeakKeyDictionary()",
        "prepared: ContextVar[Mapping[int, str]] = ContextVar('prepared')",
        "found = []",
    ],
)
def test_registries_are_detected(text):
    assert is_registry(ast.parse(text).body[0])


def test_importing_the_package_imports_nothing():
    assert imports(PACKAGE / "__init__.py") == set()


def test_no_module_is_longer_than_400_lines():
    long = {
        name: lines
        for name, path in modules().items()
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 400
    }
    assert long == {}
