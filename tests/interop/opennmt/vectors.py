"""Vectors that record_vectors.py recorded of OpenNMT-tf 2.32, and our model."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from t2t_repro.interop.opennmt.importer import read
from t2t_repro.interop.source import Source
from t2t_repro.models.transformer import Transformer

DATA = Path(__file__).resolve().parents[2] / "data" / "golden"
CASES = ("base", "relative", "post")


@dataclass(frozen=True)
class Vectors:
    """A case: OpenNMT-tf's files and values, and what they became here."""

    arrays: dict[str, np.ndarray]
    read: Source
    model: Transformer
    # Row of OpenNMT-tf's table -> our id, of the source and of the target.
    ids: tuple[np.ndarray, np.ndarray]

    def batch(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the sources and targets in our ids, ended and padded as ours."""
        sources = self.read.tokenizer.encode(self.arrays["sources"]).to_tensor()
        targets = self.read.tokenizer.target.encode(self.arrays["targets"]).to_tensor()
        return sources.numpy(), targets.numpy()


def arrays_of(case: str) -> dict[str, np.ndarray]:
    """Reads the recorded file of a case."""
    with np.load(DATA / f"opennmt_{case}.npz") as file:
        return {name: file[name] for name in file.files}


def write_files(case: str, folder: Path, part: str = "file") -> Path:
    """Writes OpenNMT-tf's files into a folder that is made."""
    for name, value in arrays_of(case).items():
        if name.startswith(f"{part}/"):
            path = folder / name.removeprefix(f"{part}/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(value.tobytes())
    return folder


def read_files(folder: Path, **changes: object) -> Source:
    """Reads such a folder."""
    given = {"checkpoint": folder, "config": (str(folder / "data.yml"),)}
    return read(**given | changes)


def load(case: str, folder: Path) -> Vectors:
    """Writes the files of a case and reads the model."""
    write_files(case, folder)
    read = read_files(folder)
    ids = tuple(
        _ours(side.pieces, folder, name)
        for side, name in (
            (read.tokenizer, "source"),
            (read.tokenizer.target, "target"),
        )
    )
    return Vectors(arrays_of(case), read, read.build(), ids)


def _ours(pieces: list[str], folder: Path, side: str) -> np.ndarray:
    """Finds our id of each of OpenNMT-tf's, <unk> last."""
    (path,) = folder.glob(f"*{side}*.vocab")
    theirs = path.read_text(encoding="utf-8").split("\n")[:-1]
    return np.array([pieces.index(piece) for piece in [*theirs, "<unk>"]])
