"""Builds wheel and sdist, and tests them in empty environments.

    python tools/check_package.py --python python3.11,python3.12,python3.13
    python tools/check_package.py --python python3.11 --lowest

`python -m build` builds both from the tracked files, and their contents are compared
with the tree. Installing the wheel must not replace a package of Google Colab. Wheel
and sdist are installed for each Python into empty environments outside of the checkout.
There, all commands run with `--help`, and the quickstart's model is trained for a few
steps, exported (also as a preset of keras-hub) and used for translation. --full trains
and scores it completely in the first environment. --lowest installs the lowest allowed
version of each package. An environment takes about four minutes, mostly for pip, and
--full takes ten more.
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

from archives import finish_sdist, finish_wheel
from benchmarks.report import say
from colab_packages import check_colab
from flags import parser, several

from t2t_repro.command_line import cli
from t2t_repro.system.errors import UserError

ROOT = Path(__file__).resolve().parents[1]
PROBLEM = "translate_ende_numbers"
# A short training run. It ends before the end of the warm-up, so it is not scored.
FEW_STEPS = "tiny,train_steps=40,checkpoint_steps=20,eval_steps=0"
SENTENCE = "half past four"
_VERSION = "from importlib import metadata; print(metadata.version('tensorflow'))"
_GENERATE = (
    "import sys, keras_hub, t2t_repro.hub; "
    "task = keras_hub.models.Seq2SeqLM.from_preset('preset/1'); "
    "print('generated', [task.generate(sys.argv[1])])"
)
_PROGRAM = re.compile(r'^if __name__ == "__main__":$', re.MULTILINE)


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, tests all installations and prints the results."""
    args = parser(
        __doc__,
        ("python", several(str), "python3", "interpreters, separated by commas"),
        ("full", bool, False, "train and score completely in the first environment"),
        ("lowest", bool, False, "install the lowest versions that setup.cfg allows"),
        ("work_dir", cli.path, None, "folder to keep wheel, sdist and environments in"),
    ).parse_args(argv)
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
        say(f"in Colab, it adds {', '.join(added)} and replaces nothing")
        constraints = work / "constraints.txt"
        constraints.write_text(lowest(ROOT / "setup.cfg") if args.lowest else "")
        results: list[dict[str, Any]] = []
        for python, archive in itertools.product(pythons, archives):
            full = args.full and not results
            results.append(check_install(python, archive, work, constraints, full))
            say(json.dumps(results[-1]))
    names = [archive.name for archive in archives]
    values = {"archives": names, "colab_adds": added, "installations": results}
    text = f"{len(results)} installations work: {', '.join(names)}"
    cli.print_result(text, values, args.json)


def _interpreter(name: str) -> str:
    """Returns the absolute path of an interpreter."""
    if path := shutil.which(name):
        return os.path.abspath(path)
    raise UserError(f"--python {name}: no such program")


def build(work: Path) -> list[Path]:
    """Builds the sdist and, from it, the wheel; returns wheel and sdist.

    Writes a copy of the tracked files to ``source`` in `work` and the archives to
    ``dist``. Their times are $SOURCE_DATE_EPOCH, or the time of the last commit. Raises
    UserError with the end of the output if the build fails.
    """
    source, dist = work / "source", work / "dist"
    for folder in (source, dist):
        shutil.rmtree(folder, ignore_errors=True)
    for name in tracked_files():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, source / name)
    command = [sys.executable, "-m", "build", "--outdir", str(dist), str(source)]
    _run(command, cwd=work, what="python -m build")
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    time_of_commit = ["git", "log", "-1", "--format=%ct"]
    epoch = int(
        os.environ.get("SOURCE_DATE_EPOCH")
        or _run(time_of_commit, cwd=ROOT, what="git log")
    )
    finish_wheel(wheel, epoch)
    finish_sdist(sdist, epoch)
    return [wheel, sdist]


def tracked_files() -> list[str]:
    """Returns the tracked and untracked files of the checkout, without ignored ones."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = _run(command, cwd=ROOT, what="git ls-files").split("\0")
    return [name for name in names if name and (ROOT / name).is_file()]


def package_files(root: Path) -> set[str]:
    """Returns the files of an installed package, by their names in a wheel."""
    paths = [*root.glob("t2t_repro/**/*"), *root.glob("configs/*.yaml")]
    return {
        _name_in_wheel(path.relative_to(root).as_posix())
        for path in paths
        if path.is_file() and path.parent.name != "__pycache__"
    }


def _name_in_wheel(name: str) -> str:
    """Returns a file's name in a wheel; `configs/` becomes `t2t_repro/configs/`."""
    return f"t2t_repro/{name}" if name.startswith("configs/") else name


def list_files(archive: Path) -> set[str]:
    """Returns the files in a wheel or an sdist, by their names in a wheel."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return set(wheel.namelist())
    with tarfile.open(archive) as sdist:
        names = [each.name for each in sdist.getmembers() if each.isfile()]
    return {_name_in_wheel(name.partition("/")[2]) for name in names}


def check_contents(archive: Path, root: Path) -> None:
    """Raises UserError unless an archive has exactly the package's files."""
    expected, names = package_files(root), list_files(archive)
    missing = sorted(expected - names)
    if missing:
        raise UserError(f"{archive.name} lacks {', '.join(missing)}; see setup.cfg")
    extra = sorted(name for name in names - expected if name.startswith("t2t_repro/"))
    if extra:
        raise UserError(
            f"{archive.name} has {', '.join(extra)}, which the checkout lacks"
        )


def lowest(setup_cfg: Path) -> str:
    """Returns pip constraints with the lowest allowed version of each package.

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
    """Installs an archive into an empty environment and runs the quickstart there.

    Args:
        python: Interpreter.
        archive: Wheel or sdist.
        work: Folder for the environment and the model.
        constraints: pip constraints file, which may be empty.
        full: Whether to train and score the complete quickstart.

    Returns:
        Versions, times in seconds and, if `full`, the BLEU score.

    Raises:
        UserError: A program fails; the message has the end of its output.
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
    """Runs all commands with --help, then trains, exports and translates."""

    def command(module: str, *flags: str, stdin: str = "") -> str:
        what, program = f"{name}: t2t_repro.{module}", f"t2t_repro.{module}"
        return _run([own, "-m", program, *flags], cwd=folder, what=what, stdin=stdin)

    printed = "import t2t_repro; print(t2t_repro.__file__)"
    where = _run([own, "-c", printed], cwd=folder, what=name)
    if not Path(where.strip()).is_relative_to(environment):
        raise UserError(f"{name}: t2t_repro was imported from {where.strip()}")
    for module in commands(environment.parent / "source"):
        if "usage:" not in command(module, "--help"):
            raise UserError(f"{name}: t2t_repro.{module} --help shows no usage")
    flags = ("--hparams", "tiny" if full else FEW_STEPS, "--problem", PROBLEM)
    folders = ("--model_dir", "model", "--data_dir", "data")
    result = json.loads(command("train", *flags, *folders, "--json"))
    command("export", "--model_dir", "model", "--export_dir", "export")
    if not (folder / "export" / "1" / "saved_model.pb").is_file():
        raise UserError(f"{name}: the export lacks saved_model.pb")
    translated = command("translate", "--model_dir", "model", stdin=f"{SENTENCE}\n")
    if translated.count("\n") != 1:
        raise UserError(f"{name}: the translation of one line is {translated!r}")
    command("export", *folders[:2], "--export_dir", "preset", "--format", "keras_hub")
    generated = _run([own, "-c", _GENERATE, SENTENCE], cwd=folder, what=name)
    if "generated" not in generated:
        raise UserError(f"{name}: the preset generates {generated!r}")
    keys = ("steps", "bleu", "signature")
    figures = {key: result[key] for key in keys if key in result}
    return figures | {"translation": translated.strip()}


def commands(root: Path) -> Iterable[str]:
    """Yields the names of the commands: the modules that run as programs."""
    for path in sorted(root.glob("t2t_repro/[!_]*.py")):
        if _PROGRAM.search(path.read_text(encoding="utf-8")):
            yield path.stem


def _run(command: list[str], cwd: Path, what: str, stdin: str = "") -> str:
    """Runs a program without access to the checkout's modules; returns its output."""
    hidden = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")
    env = {k: v for k, v in os.environ.items() if k not in hidden}
    process = subprocess.run(
        command, cwd=cwd, env=env, input=stdin, capture_output=True, encoding="utf-8"
    )
    if process.returncode:
        last = " | ".join((process.stdout + process.stderr).strip().splitlines()[-5:])
        raise UserError(f"{what} exited with status {process.returncode}: {last}")
    return process.stdout


if __name__ == "__main__":
    cli.run(main)
