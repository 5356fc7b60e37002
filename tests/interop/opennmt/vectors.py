"""Reference data of OpenNMT-tf 2.32, recorded by record_vectors.py."""

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
    """Recorded case and the imported model.

    Attributes:
        arrays: OpenNMT-tf's inputs and outputs.
        read: Result of the importer.
        model: Imported model.
        ids: For source and target, this package's id of each row of OpenNMT-tf's table.
    """

    arrays: dict[str, np.ndarray]
    read: Source
    model: Transformer
    ids: tuple[np.ndarray, np.ndarray]

    def batch(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns sources and targets as this package's ids, padded with 0."""
        sources = self.read.tokenizer.encode(self.arrays["sources"]).to_tensor()
        targets = self.read.tokenizer.target.encode(self.arrays["targets"]).to_tensor()
        return sources.numpy(), targets.numpy()


def arrays_of(case: str) -> dict[str, np.ndarray]:
    """Reads the recorded file of a case."""
    with np.load(DATA / f"opennmt_{case}.npz") as file:
        return {name: file[name] for name in file.files}


def write_files(case: str, folder: Path, part: str = "file") -> Path:
    """Writes OpenNMT-tf's files of a case into a new folder."""
    for name, value in arrays_of(case).items():
        if name.startswith(f"{part}/"):
            path = folder / name.removeprefix(f"{part}/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(value.tobytes())
    return folder


def read_files(folder: Path, **changes: object) -> Source:
    """Imports a folder of OpenNMT-tf; `changes` override arguments of the importer."""
    arguments = {"checkpoint": folder, "config": (str(folder / "data.yml"),)}
    return read(**arguments | changes)


def load(case: str, folder: Path) -> Vectors:
    """Writes the files of a case into the folder and imports the model."""
    write_files(case, folder)
    read = read_files(folder)
    ids = tuple(
        _our_ids(side.pieces, folder, name)
        for side, name in (
            (read.tokenizer, "source"),
            (read.tokenizer.target, "target"),
        )
    )
    return Vectors(arrays_of(case), read, read.build(), ids)


def _our_ids(pieces: list[str], folder: Path, side: str) -> np.ndarray:
    """Returns this package's id of each row of OpenNMT-tf's table, <unk> last."""
    (path,) = folder.glob(f"*{side}*.vocab")
    theirs = path.read_text(encoding="utf-8").split("\n")[:-1]
    return np.array([pieces.index(piece) for piece in [*theirs, "<unk>"]])
