"""Contents of a folder after a power failure, from the recorded changes of its files.

A change that was not synced may be lost, whatever became of later ones: fsync of a file
keeps its contents, and fsync of a folder keeps the names in it. The name of a file may
thus survive without its contents.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

_ROOT = 0
_MARK = "done-"


class Change(NamedTuple):
    """Recorded change of a file's contents, or of names in folders.

    Attributes:
        node: Number of the file; None for names.
        place: Offset of the written bytes, or the length of a truncated file.
        data: Written bytes; None if the file is truncated.
        names: Folder, name and node of each changed name; a node of None: removed.
    """

    node: int | None = None
    place: int = 0
    data: bytes | None = None
    names: tuple[tuple[int, str, int | None], ...] = ()

    @property
    def nodes(self) -> set[int | None]:
        """Files and folders whose fsync keeps the change."""
        return {self.node} | {folder for folder, _, _ in self.names}


class Recording:
    """Changes that a function made in an empty folder.

    Args:
        folder: Absolute path of the folder.
        log: File that the library of `calls.c` wrote.

    Attributes:
        changes: Changes in order.
        marks: Number of changes before the function created the file ``done-NUMBER``,
            by number. Creating these files is not a change.
    """

    def __init__(self, folder: Path, log: Path) -> None:
        self.changes: list[Change] = []
        self.marks: dict[int, int] = {}
        self._syncs: list[tuple[int, int]] = []  # Number of changes so far, and node.
        self._names: dict[int, dict[str, int]] = {_ROOT: {}}
        self._count = 1
        for kind, path, other, place, data in _read_log(log):
            name = Path(path).name
            if name.startswith(_MARK):
                number = int(name.removeprefix(_MARK))
                self.marks.setdefault(number, len(self.changes))
            elif kind == "fsync":
                self._syncs.append((len(self.changes), self._find(folder, path)[2]))
            else:
                self._add(folder, kind, path, other, place, data)

    def unsynced(self, end: int) -> list[int]:
        """Returns the changes before `end` that a power failure then may undo."""
        return [
            number
            for number, change in enumerate(self.changes[:end])
            if not any(
                number < at <= end and node in change.nodes for at, node in self._syncs
            )
        ]

    def replay(self, kept: Collection[int], folder: Path) -> None:
        """Applies the changes with these numbers in order, in a new folder."""
        names: dict[int, dict[str, int]] = defaultdict(dict)
        contents: dict[int, bytearray] = defaultdict(bytearray)
        for number in sorted(kept):
            change = self.changes[number]
            if change.node is not None:
                file, place = contents[change.node], change.place
                if change.data is None:
                    del file[place:]
                else:
                    file.extend(bytes(max(0, place - len(file))))
                    file[place : place + len(change.data)] = change.data
            for node, name, target in change.names:
                names[node].pop(name, None)
                if target is not None:
                    names[node][name] = target
        self._write(_ROOT, folder, names, contents)

    def _write(
        self,
        node: int,
        path: Path,
        names: dict[int, dict[str, int]],
        contents: dict[int, bytearray],
    ) -> None:
        if node not in self._names:
            path.write_bytes(contents[node])
            return
        path.mkdir()
        for name, child in names[node].items():
            self._write(child, path / name, names, contents)

    def _add(
        self, folder: Path, kind: str, path: str, other: str, place: int, data: bytes
    ) -> None:
        """Adds a change and applies it to the names."""
        parent, name, node = self._find(folder, path)
        if kind in ("write", "truncate"):
            written = data if kind == "write" else None
            self.changes.append(Change(node, place, written))
            return
        names: list[tuple[int, str, int | None]] = [(parent, name, None)]
        if kind == "rename":
            names.append((*self._find(folder, other)[:2], node))
        elif kind != "unlink":
            names = [(parent, name, self._count)]
            if kind == "mkdir":
                self._names[self._count] = {}
            self._count += 1
        self.changes.append(Change(names=tuple(names)))
        for at, each, target in names:
            self._names[at].pop(each, None)
            if target is not None:
                self._names[at][each] = target

    def _find(self, folder: Path, path: str) -> tuple[int, str, int]:
        """Returns the node of a path's folder, its name and its own node, if any."""
        *parents, name = ("", *Path(path).relative_to(folder).parts)
        node = _ROOT
        for parent in parents[1:]:
            node = self._names[node][parent]
        return node, name, self._names[node].get(name, -1) if name else _ROOT


def _read_log(log: Path) -> Iterator[tuple[str, str, str, int, bytes]]:
    """Yields kind, path, new path, offset and data of each recorded call."""
    with log.open("rb") as file:
        while line := file.readline():
            kind, path, other, place, size = line.decode()[:-1].split("\t")
            yield kind, path, other, int(place), file.read(int(size))
