"""Separate Python environments for programs that need other packages."""

import json
import subprocess
import venv
from collections.abc import Sequence
from pathlib import Path

from t2t_repro.system.errors import UserError


def make_environment(folder: Path, *installs: Sequence[str]) -> str:
    """Creates an environment and returns its interpreter.

    Reuses an existing environment that was created with the same arguments.

    Args:
        folder: Folder of the environment.
        installs: Arguments of each `pip install`.

    Raises:
        UserError: pip fails.
    """
    python, record = folder / "bin" / "python", folder / "installed"
    arguments = json.dumps(installs)
    if record.exists() and record.read_text(encoding="utf-8") == arguments:
        return str(python)
    venv.create(folder, with_pip=True, clear=True)
    for each in installs:
        pip = [str(python), "-m", "pip", "install", "--quiet", *each]
        process = subprocess.run(pip, capture_output=True, text=True, check=False)
        if process.returncode != 0:
            last = process.stderr.strip().rpartition("\n")[2]
            raise UserError(f"pip cannot install {' '.join(each)}: {last}")
    record.write_text(arguments, encoding="utf-8")
    return str(python)
