"""Lists the commands of the package, one line each.

Every command is a module of its own, python -m t2t_repro.COMMAND, and has --help.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from t2t_repro.command_line import cli
from t2t_repro.command_line.command_list import find_commands
from t2t_repro.hparams.settings import suggest_similar
from t2t_repro.system.errors import UserError


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags and prints the commands."""
    arguments = sys.argv[1:] if argv is None else argv
    commands = find_commands()
    if arguments and not arguments[0].startswith("-"):
        name = arguments[0]
        if name in commands:
            raise UserError(f"a command is a module: run python -m t2t_repro.{name}")
        hint = suggest_similar(name, commands)
        raise UserError(
            f"no command is called {name!r}{hint or '; omit it for a list'}"
        )
    args = cli.ArgumentParser(__doc__).parse_args(arguments)
    width = max(map(len, commands))
    lines = [f"python -m t2t_repro.{n:{width}}  {text}" for n, text in commands.items()]
    cli.print_result("\n".join(lines), commands, args.json)


if __name__ == "__main__":
    cli.run(main)
