"""List of faults, each a text replacement in a source file."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import yaml

from t2t_repro.system.atomic_file import read_lines
from t2t_repro.system.errors import UserError

FAULTS_FILE = Path(__file__).with_name("faults.yaml")


class Fault(NamedTuple):
    """A fault: a text replacement that breaks the code.

    Attributes:
        room: Subpackage with the fault.
        name: Short name, unique in the list.
        fault: Description of the wrong behavior, as a sentence.
        file: Changed file, relative to the checkout.
        old: Text that occurs once in the file.
        new: Replacement of `old`.
        tests: Files and folders of tests that exercise the file.
    """

    room: str
    name: str
    fault: str
    file: str
    old: str
    new: str
    tests: list[str]

    def apply(self, text: str) -> str:
        """Returns the text of the file with the fault applied."""
        return text.replace(self.old, self.new)


def read_faults(path: Path) -> list[Fault]:
    """Reads a list of faults; raises UserError if its format is wrong."""
    try:
        rooms = yaml.safe_load("\n".join(read_lines(path)))
        return [Fault(room, **each) for room in rooms for each in rooms[room]]
    except (yaml.YAMLError, TypeError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{path} is not a list of faults: {reason}") from None


def check_faults(faults: Sequence[Fault], tree: Path) -> None:
    """Raises UserError unless all faults apply to a checkout and have their tests."""
    for fault in faults:
        for name in (fault.file, *fault.tests):
            if not (tree / name).exists():
                raise UserError(
                    f"fault {fault.name}: {tree / name} does not exist; update the "
                    "list of faults"
                )
        count = (tree / fault.file).read_text(encoding="utf-8").count(fault.old)
        if count != 1:
            raise UserError(
                f"fault {fault.name}: {fault.old!r} must occur once in {fault.file}, "
                f"but occurs {count} times; update the list of faults"
            )
