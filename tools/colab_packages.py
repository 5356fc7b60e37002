"""Checks that an installation in Google Colab does not replace Colab's packages.

The check creates an environment with only the metadata of Colab's packages (names and
versions), in which pip resolves the requirements without installing them.
"""

import json
import subprocess
import tempfile
import venv
from pathlib import Path

from packaging.utils import canonicalize_name

from t2t_repro.system.errors import UserError

PACKAGES = Path(__file__).with_suffix(".txt")


def check_colab(project: Path, packages: Path = PACKAGES) -> list[str]:
    """Checks the effects of installing a project in Colab.

    Args:
        project: A wheel, an sdist or a source tree.
        packages: File of "NAME==VERSION" lines, one per package that Colab has, and
            "NAME" lines for packages that it lacks.

    Returns:
        "NAME VERSION" of each package that pip would add, sorted.

    Raises:
        UserError: pip would replace a package of Colab, would install a package that is
            not in `packages`, or cannot resolve the requirements.
    """
    versions = read_packages(packages)
    with tempfile.TemporaryDirectory() as temporary:
        environment = Path(temporary) / "environment"
        venv.create(environment, with_pip=True)
        (site,) = environment.glob("lib/python*/site-packages")
        for name, version in versions.items():
            if version:
                _add_metadata(site, name, version)
        installed = _resolve(environment, project, Path(temporary) / "report.json")
    replaced = [
        f"{name} {versions[name]} by {version}"
        for name, version in installed.items()
        if versions.get(name)
    ]
    if replaced:
        raise UserError(
            f"in Colab, installing {project.name} would replace {', '.join(replaced)}: "
            "allow Colab's versions in setup.cfg"
        )
    if unknown := sorted(installed.keys() - versions.keys()):
        raise UserError(
            f"{packages.name} does not list {', '.join(unknown)}, which {project.name} "
            "requires: add Colab's version, or only the name if Colab lacks it"
        )
    return [f"{name} {version}" for name, version in installed.items()]


def read_packages(path: Path) -> dict[str, str]:
    """Returns the version of each package, "" if Colab lacks it, by normalized name."""
    versions: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, _, version = line.partition("==")
            versions[canonicalize_name(name)] = version
    return versions


def _add_metadata(site: Path, name: str, version: str) -> None:
    """Adds the metadata of a package, so that pip considers it installed.

    The metadata omits requirements, because Colab's packages are consistent.
    """
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    (folder / "METADATA").write_text(metadata, encoding="utf-8")


def _resolve(environment: Path, project: Path, report: Path) -> dict[str, str]:
    """Returns the versions of the packages that pip would add for a project."""
    # -I ignores PYTHONPATH, where pip would find the checkout's metadata.
    python = str(environment / "bin" / "python")
    pip = [python, "-I", "-m", "pip", "install", "--quiet", "--dry-run"]
    command = [*pip, "--report", str(report), str(project)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        last = process.stderr.strip().rpartition("\n")[2]
        raise UserError(f"pip cannot resolve {project.name} in Colab: {last}")
    installs = json.loads(report.read_text(encoding="utf-8"))["install"]
    packages = [each["metadata"] for each in installs if not each["requested"]]
    return dict(sorted((canonicalize_name(p["name"]), p["version"]) for p in packages))
