"""Names and descriptions of the commands, from their modules."""

import ast
from pathlib import Path

import t2t_repro


def find_commands() -> dict[str, str]:
    """Returns the first line of each command's docstring, by name, sorted.

    The modules are parsed but not imported.
    """
    folder = Path(t2t_repro.__file__).parent
    modules = sorted(folder.glob("[!_]*.py"))
    return {path.stem: _first_line(path) for path in modules}


def _first_line(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    return (docstring or "").partition("\n")[0]
