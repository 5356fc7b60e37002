"""SHA-256 of the files of an export, listed in its model card.

The list has the format of the program sha256sum. It reveals damaged copies and mixed
versions. It does not prove the origin of an export: whoever alters a file can alter the
card as well.
"""

import hashlib
import re
from pathlib import Path

import t2t_repro
from t2t_repro.serving.versions import EXTRA_FOLDER
from t2t_repro.system.errors import UserError

MODEL_CARD = "README.md"
_CARDS = (f"{EXTRA_FOLDER}/{MODEL_CARD}", MODEL_CARD)
_SECTION = re.compile(r"^## Files\n\n```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")
_FAULTS_SHOWN = 5


def add_digests(folder: Path, model_name: str, format_name: str) -> None:
    """Adds the digests of all other files to the model card of an export.

    Args:
        folder: Folder of a version.
        model_name: Title of a new card, if the format has none.
        format_name: Name of the format, for a new card.
    """
    card = _find_card(folder)
    text = ""
    if not card.exists():
        origin = f"Exported as {format_name} by t2t_repro {t2t_repro.__version__}."
        text = f"# {model_name}\n\n{origin}\n"
    names = sorted(_list_files(folder) - {card.relative_to(folder).as_posix()})
    lines = "".join(f"{_digest(folder / name)}  {name}\n" for name in names)
    with card.open("a", encoding="utf-8") as file:
        file.write(f"{text}\n## Files\n\n```\n{lines}```\n")


def verify(folder: Path) -> int:
    """Compares the files of an export with the digests in its model card.

    Args:
        folder: Folder of a version.

    Returns:
        Number of files, without the card.

    Raises:
        UserError: A file was altered, is missing or is not in the card, or there is no
            card with digests.
    """
    card = _find_card(folder)
    try:
        sections = _SECTION.findall(card.read_text(encoding="utf-8"))
        lines = [_LINE.fullmatch(line) for line in sections[-1].splitlines()]
        expected = {line[2]: line[1] for line in lines if line}
    except (OSError, ValueError, LookupError):
        raise UserError(
            f"{folder} has no model card with digests; name the folder of a version "
            "that export has written, such as exported/1"
        ) from None
    names = _list_files(folder) - {card.relative_to(folder).as_posix()}
    faults = [
        *(f"{name} is missing" for name in sorted(expected.keys() - names)),
        *(f"{name} is not in the card" for name in sorted(names - expected.keys())),
        *(
            f"{name} was altered"
            for name in sorted(names & expected.keys())
            if _digest(folder / name) != expected[name]
        ),
    ]
    if faults:
        more = len(faults) - _FAULTS_SHOWN
        text = ", ".join(faults[:_FAULTS_SHOWN]) + (f", {more} more" * (more > 0))
        raise UserError(f"{folder}: {text}; copy or export the model again")
    return len(expected)


def _find_card(folder: Path) -> Path:
    """Returns the path of the card, or of a new one."""
    existing = (folder / name for name in _CARDS if (folder / name).is_file())
    return next(existing, folder / MODEL_CARD)


def _list_files(folder: Path) -> set[str]:
    """Returns all paths below a folder except directories, relative to the folder."""
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }


def _digest(path: Path) -> str:
    """Returns the SHA-256 of a file; "" for a pipe, a device or a link to a folder."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
