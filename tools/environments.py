"""Environments of their own for programs that need other packages than this one."""

import json
import subprocess
import venv
from collections.abc import Sequence
from pathlib import Path

from t2t_repro.system.errors import UserError


def make_environment(folder: Path, *installs: Sequence[str]) -> str:
    """Makes an environment, once; returns its interpreter.

    Each of `installs` are the arguments of one `pip install`. What was made of others
    is made anew. Raises UserError if pip fails.
    """
    python, done = folder / "bin" / "python", folder / "installed"
    wanted = json.dumps(installs)
    if done.exists() and done.read_text(encoding="utf-8") == wanted:
        return str(python)
    venv.create(folder, with_pip=True, clear=True)
    for each in installs:
        pip = [str(python), "-m", "pip", "install", "--quiet", *each]
        installed = subprocess.run(pip, capture_output=True, text=True, check=False)
        if installed.returncode != 0:
            last = installed.stderr.strip().rpartition("\n")[2]
            raise UserError(f"pip cannot install {' '.join(each)}: {last}")
    done.write_text(wanted, encoding="utf-8")
    return str(python)
