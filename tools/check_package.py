"""Builds wheel and sdist, installs each into empty environments and trains there.

    python tools/check_package.py --python python3.11,python3.12,python3.13
    python tools/check_package.py --python python3.11 --lowest

`python -m build` makes both from only the tracked files; their contents are compared
with the tree. The wheel must replace no package of Google Colab. Every Python gets an
empty environment for each, outside the checkout, where every command answers `--help`
and the quickstart trains for a few steps, exports and translates; with --full the first
one trains and scores all of it. With --lowest every package is the lowest that
setup.cfg allows instead of the highest. An environment takes about four minutes, most
of it pip's, and --full ten more. --work_dir names a folder that keeps everything.
"""

import configparser
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import say
from colab_packages import check_colab
from flags import several

from t2t_repro.command_line import cli
from t2t_repro.system.errors import UserError

ROOT = Path(__file__).resolve().parents[1]
PROBLEM = "translate_ende_numbers"
# What makes the training short; fewer steps than the warm-up, so it is not scored.
FEW_STEPS = "tiny,train_steps=40,checkpoint_steps=20,eval_steps=0"
SENTENCE = "half past four"
_VERSION = "from importlib import metadata; print(metadata.version('tensorflow'))"
_PROGRAM = re.compile(r'^if __name__ == "__main__":$', re.MULTILINE)


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, builds, installs, trains and prints what was found."""
    args = _parser().parse_args(argv)
    pythons = [_interpreter(name) for name in args.python]
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(args.work_dir or temporary).resolve()
        work.mkdir(parents=True, exist_ok=True)
        say("building wheel and sdist")
        archives = build(work)
        for archive in archives:
            check_contents(archive, work / "source")
        say("resolving the wheel in Colab")
        added = check_colab(archives[0])
        say(f"in Colab it adds {', '.join(added)} and replaces nothing")
        constraints = work / "constraints.txt"
        constraints.write_text(lowest(ROOT / "setup.cfg") if args.lowest else "")
        found: list[dict[str, Any]] = []
        for python, archive in itertools.product(pythons, archives):
            full = args.full and not found
            found.append(check_install(python, archive, work, constraints, full))
            say(describe(found[-1]))
    names = [archive.name for archive in archives]
    cli.print_result(
        f"{len(found)} installations work: {', '.join(names)}",
        {"archives": names, "colab_adds": added, "installations": found},
        args.json,
    )


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(
        "Builds wheel and sdist, installs each into an empty environment of each "
        "Python, and runs the quickstart's training there, shortened."
    )
    add = parser.add_argument
    add(
        "--python",
        type=several(str),
        default="python3",
        help="interpreters, with commas between",
    )
    add(
        "--full",
        action="store_true",
        help="train all the quickstart's steps in the first environment, and score",
    )
    add(
        "--lowest",
        action="store_true",
        help="install the lowest version that setup.cfg allows of each package",
    )
    add("--work_dir", help="keep wheel, sdist and environments in this folder")
    return parser


def _interpreter(name: str) -> str:
    """Returns the absolute path of an interpreter."""
    path = shutil.which(name)
    if path is None:
        raise UserError(f"--python {name}: there is no such program")
    return os.path.abspath(path)


def build(work: Path) -> list[Path]:
    """Builds the sdist, and the wheel from it, and returns wheel and sdist.

    `work` gets a copy of the tracked files in ``source`` and the two in ``dist``. A
    UserError ends with what the tool said last.
    """
    source, dist = work / "source", work / "dist"
    for folder in (source, dist):
        shutil.rmtree(folder, ignore_errors=True)
    for name in tracked_files():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, source / name)
    command = [sys.executable, "-m", "build", "--outdir", str(dist), str(source)]
    _run(command, cwd=work, what="python -m build")
    return [*dist.glob("*.whl"), *dist.glob("*.tar.gz")]


def tracked_files() -> list[str]:
    """Returns the files that git knows, or would on `git add`, below the root."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = _run(command, cwd=ROOT, what="git ls-files").split("\0")
    return [name for name in listed if name and (ROOT / name).is_file()]


def wanted_files(root: Path) -> set[str]:
    """Returns what an installed package holds, by the names in a wheel."""
    package = {
        path.relative_to(root).as_posix()
        for path in root.glob("t2t_repro/**/*")
        if path.is_file() and path.parent.name != "__pycache__"
    }
    return package | {
        f"t2t_repro/configs/{p.name}" for p in root.glob("configs/*.yaml")
    }


def names_in(archive: Path) -> set[str]:
    """Returns the files in a wheel or an sdist, by the names in a wheel.

    An sdist's outer folder is left out; its `configs/` counts as what it becomes.
    """
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return set(wheel.namelist())
    with tarfile.open(archive) as sdist:
        names = {m.name.partition("/")[2] for m in sdist.getmembers() if m.isfile()}
    return {
        f"t2t_repro/{name}" if name.startswith("configs/") else name for name in names
    }


def check_contents(archive: Path, root: Path) -> None:
    """Raises UserError unless an archive holds the package's files and no others."""
    wanted, names = wanted_files(root), names_in(archive)
    missing = sorted(wanted - names)
    if missing:
        raise UserError(f"{archive.name} lacks {', '.join(missing)}; see setup.cfg")
    foreign = sorted(name for name in names - wanted if name.startswith("t2t_repro/"))
    if foreign:
        raise UserError(f"{archive.name} holds {', '.join(foreign)} beyond the tree")


def lowest(setup_cfg: Path) -> str:
    """Returns constraints for pip: of each package the lowest version of its range.

    "tensorflow>=2.19,<2.22" becomes "tensorflow==2.19.*".
    """
    parsed = configparser.ConfigParser()
    parsed.read(setup_cfg, encoding="utf-8")
    ranges = re.findall(
        r"^([\w-]+)>=([\d.]+)", parsed["options"]["install_requires"], re.MULTILINE
    )
    return "".join(f"{name}=={version}.*\n" for name, version in ranges)


def check_install(
    python: str, archive: Path, work: Path, constraints: Path, full: bool = False
) -> dict[str, Any]:
    """Installs an archive into an empty environment and trains outside the checkout.

    `work` gets the environment and a folder to train in; `constraints` is a file for
    pip, which may be empty; `full` trains the quickstart's whole training and scores
    it. Returns what was installed where, how long it took,
    and the BLEU of a full training. A step's UserError ends with what it said last.
    """
    version = _run([python, "--version"], cwd=work, what=python).strip()
    kind = "wheel" if archive.suffix == ".whl" else "sdist"
    name = f"{version.replace(' ', '-')}-{kind}"
    environment, folder = work / f"{name}-env", work / f"{name}-run"
    for path in (environment, folder):
        shutil.rmtree(path, ignore_errors=True)
    folder.mkdir()
    say(f"{name}: installing {archive.name}")
    began = time.monotonic()
    _run([python, "-m", "venv", str(environment)], cwd=work, what=f"{name}: venv")
    own = str(environment / "bin" / "python")
    pip = [own, "-m", "pip", "--disable-pip-version-check"]
    install = [*pip, "install", "--constraint", str(constraints), str(archive)]
    _run(install, cwd=folder, what=f"{name}: pip install")
    _run([*pip, "check"], cwd=folder, what=f"{name}: pip check")
    installed = time.monotonic()
    return {
        "python": version,
        "archive": archive.name,
        "tensorflow": _run([own, "-c", _VERSION], cwd=folder, what=name).strip(),
        "install_seconds": round(installed - began),
        **_try(own, folder, environment, name, full),
        "seconds": round(time.monotonic() - installed),
    }


def _try(
    own: str, folder: Path, environment: Path, name: str, full: bool
) -> dict[str, Any]:
    """Asks every command for help, trains, exports and translates; returns results."""

    def command(module: str, *flags: str, stdin: str = "") -> str:
        return _run(
            [own, "-m", f"t2t_repro.{module}", *flags],
            cwd=folder,
            what=f"{name}: t2t_repro.{module}",
            stdin=stdin,
        )

    printed = "import t2t_repro; print(t2t_repro.__file__)"
    where = _run([own, "-c", printed], cwd=folder, what=name)
    if not Path(where.strip()).is_relative_to(environment):
        raise UserError(f"{name}: the package that is imported is {where.strip()}")
    for module in commands(environment.parent / "source"):
        if "usage:" not in command(module, "--help"):
            raise UserError(f"{name}: t2t_repro.{module} --help shows no usage")
    flags = ("--hparams", "tiny" if full else FEW_STEPS, "--problem", PROBLEM)
    folders = ("--model_dir", "model", "--data_dir", "data")
    result = json.loads(command("train", *flags, *folders, "--json"))
    command("export", "--model_dir", "model", "--export_dir", "export")
    if not (folder / "export" / "1" / "saved_model.pb").is_file():
        raise UserError(f"{name}: the export holds no saved_model.pb")
    translated = command("translate", "--model_dir", "model", stdin=f"{SENTENCE}\n")
    if translated.count("\n") != 1:
        raise UserError(f"{name}: {SENTENCE!r} became {translated!r}, not one line")
    told = {key: result[key] for key in ("steps", "bleu", "signature") if key in result}
    return told | {"translation": translated.strip()}


def commands(root: Path) -> Iterable[str]:
    """Returns the names of the commands: the modules that run as programs."""
    for path in sorted(root.glob("t2t_repro/*.py")):
        if _PROGRAM.search(path.read_text(encoding="utf-8")):
            yield path.stem


def describe(found: dict[str, Any]) -> str:
    """Says in one line what became of an installation."""
    score = f", BLEU {found['bleu']:.2f}" if "bleu" in found else ""
    return (
        f"{found['python']}, TensorFlow {found['tensorflow']}, {found['archive']}: "
        f"installed in "
        f"{found['install_seconds']} s, {found['steps']:,} steps, export and "
        f"translation in {found['seconds']} s{score}"
    )


def _run(command: list[str], cwd: Path, what: str, stdin: str = "") -> str:
    """Runs a program where no variable leads to the checkout; returns its output."""
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")
    environment = {k: v for k, v in os.environ.items() if k not in hidden}
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        last = " | ".join((done.stdout + done.stderr).strip().splitlines()[-5:])
        raise UserError(f"{what} ended with status {done.returncode}: {last}")
    return done.stdout


if __name__ == "__main__":
    cli.run(main)
