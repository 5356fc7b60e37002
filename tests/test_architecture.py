"""The one direction of imports, read from the source of every module.

Rooms stand on floors and import from lower ones only; rooms of one floor, and commands,
do not know each other. Inside one room, modules form no circle.
"""

from __future__ import annotations

import ast
import functools
import graphlib
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "t2t_repro"

# Every room on its floor; whatever is not listed is a command, at the top.
FLOORS: tuple[frozenset[str], ...] = (
    frozenset({"system"}),
    frozenset({"layers", "decoding", "hparams", "problems", "tokenizers"}),
    frozenset({"models", "data"}),
    # The rooms below have the reference implementations only.
    frozenset({"fast", "batches", "runs"}),
    frozenset({"translation"}),
    frozenset({"analysis", "evaluation", "interop"}),
    frozenset({"live_page", "serving", "training"}),
    frozenset({"command_line"}),
)
TOP = len(FLOORS)


@functools.cache
def modules() -> dict[str, Path]:
    """Returns every module below the package: dotted name without it -> file."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts).removesuffix("__init__").rstrip(".")] = path
    del found[""]  # The package itself, which imports nothing.
    return found


def imports(path: Path) -> set[str]:
    """Returns what a module imports of the package, anywhere in its text."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write imports out in full"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    prefix = "t2t_repro."
    return {name.removeprefix(prefix) for name in names if name.startswith(prefix)}


def resolved(name: str) -> str:
    """Returns the module that holds an imported name: `hparams.HParams` -> `hparams`.

    A package's own module is kept apart from the package: `hparams.sets` is itself.
    """
    known = modules()
    while name and name not in known:
        name = name.rpartition(".")[0]
    return name


@functools.cache
def graph() -> dict[str, set[str]]:
    """Returns module -> the modules of the package that it imports."""
    return {
        name: {resolved(imported) for imported in imports(path)} - {"", name}
        for name, path in modules().items()
    }


def room(module: str) -> str:
    return module.partition(".")[0]


def floor(name: str) -> int:
    return next((at for at, rooms in enumerate(FLOORS) if name in rooms), TOP)


def test_imports_go_down_the_floors_only():
    wrong = []
    for module, imported in graph().items():
        here = room(module)
        for there in {room(name) for name in imported} - {here}:
            if floor(there) >= floor(here):
                wrong.append(f"{module} imports {there}")
    assert wrong == []


def test_rooms_form_no_circle():
    rooms: dict[str, set[str]] = {}
    for module, imported in graph().items():
        here = room(module)
        rooms.setdefault(here, set()).update({room(name) for name in imported} - {here})
    assert_no_circle(rooms)


def test_modules_form_no_circle():
    assert_no_circle(graph())


def assert_no_circle(edges: dict[str, set[str]]) -> None:
    try:
        graphlib.TopologicalSorter(edges).prepare()
    except graphlib.CycleError as error:
        pytest.fail("circle: " + " -> ".join(error.args[1]), pytrace=False)


@pytest.mark.parametrize("name", ["layers", "decoding"])
def test_layers_and_decoding_take_plain_values(name):
    """Neither knows hyper-parameters or flags, so that both can be used alone."""
    for module, path in modules().items():
        if room(module) == name:
            text = path.read_text(encoding="utf-8")
            assert "hparams" not in text.lower(), path
            assert "argparse" not in text, path


MODEL_ROOMS = {"layers", "models", "fast", "translation", "serving"}
CONTAINERS = {"dict", "list", "set", "defaultdict", "OrderedDict", "WeakSet"}
CONTAINERS |= {"WeakKeyDictionary", "WeakValueDictionary"}


def is_registry(statement: ast.stmt) -> bool:
    """Whether a statement makes a container that starts empty, or a context's."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or not statement.value:
        return False
    text, value = ast.unparse(statement), statement.value
    if isinstance(value, ast.Call):
        made = ast.unparse(value.func).rpartition(".")[2]
        is_of_context = made == "ContextVar" and re.search("dict|Mapping", text)
        return bool(is_of_context) or (made in CONTAINERS and not value.args)
    return ast.unparse(value) in ("{}", "[]")


def test_no_module_keeps_layers_variables_or_models():
    """What belongs to a model is an attribute of its layers, or an argument."""
    wrong = []
    for module, path in modules().items():
        if room(module) not in MODEL_ROOMS:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        wrong += [f"{path}:{n.lineno}" for n in tree.body if is_registry(n)]
        wrong += [
            f"{path}:{node.lineno}: id"
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and node.id == "id"
        ]
    assert wrong == []


@pytest.mark.parametrize(
    "text",
    [
        "_products: dict[tuple[int, ...], Product] = {}",
        "known = weakref.WeakKeyDictionary()",
        "prepared: ContextVar[Mapping[int, str]] = ContextVar('prepared')",
        "found = []",
    ],
)
def test_a_registry_is_recognized(text):
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
