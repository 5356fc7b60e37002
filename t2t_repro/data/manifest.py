"""The manifest of a directory of shards: what it holds and how to check it."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from t2t_repro.system.errors import UserError

MANIFEST_FILE = "manifest.json"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class DataFile:
    """One file of a shard, `sha256` in hexadecimal."""

    name: str
    bytes: int
    sha256: str

    def __post_init__(self) -> None:
        """Raises ValueError if the name leads out of the directory."""
        if Path(self.name).name != self.name or self.name == "..":
            raise ValueError(f"a shard is called {self.name!r}")

    @classmethod
    def of(cls, path: Path) -> "DataFile":
        """Measures a file."""
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return cls(path.name, path.stat().st_size, digest)


@dataclass(frozen=True)
class ShardFiles:
    """The two files of a shard and the number of its pairs."""

    pairs: int
    tokens: DataFile
    lengths: DataFile


@dataclass(frozen=True)
class SkippedPairs:
    """Pairs that were not encoded for one reason.

    Attributes:
        count: how many.
        first: the numbers of the first of them, from 1 in the order read.
    """

    count: int
    first: list[int]


@dataclass(frozen=True)
class Origin:
    """Where the pairs of a split come from.

    Attributes:
        problem: its name.
        fingerprint: identifies the split's data.
        description: what the split is, for people.
        source_lang: language of the sources.
        target_lang: language of the targets.
    """

    problem: str
    fingerprint: str
    description: str
    source_lang: str
    target_lang: str


@dataclass(frozen=True)
class Manifest:
    """What a directory of shards holds.

    Attributes:
        split: its name.
        origin: where the pairs come from.
        vocabulary_fingerprint: SHA-256 of the vocabulary file.
        vocab_size: how many ids it has.
        pairs: how many were encoded.
        source_tokens: of all of them, EOS included.
        target_tokens: likewise.
        left_out: the other pairs, by reason.
        shards: the files, in the order of the pairs.
        format_version: of this layout.
    """

    split: str
    origin: Origin
    vocabulary_fingerprint: str
    vocab_size: int
    pairs: int
    source_tokens: int
    target_tokens: int
    left_out: dict[str, SkippedPairs]
    shards: list[ShardFiles]
    format_version: int = FORMAT_VERSION

    def to_json(self) -> str:
        """Returns the manifest as indented JSON that ends in a line break."""
        return json.dumps(asdict(self), ensure_ascii=False, indent=1) + "\n"


def read_manifest(directory: Path) -> Manifest:
    """Reads `manifest.json` of a directory of shards.

    Raises:
        UserError: it is missing, not JSON, or of another version or layout.
    """
    path = directory / MANIFEST_FILE
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(
            f"{path} is missing: run datagen to encode this split"
        ) from None
    except (ValueError, OSError, RecursionError) as error:
        raise UserError(f"{path} cannot be read ({error}): run datagen again") from None
    version = data.get("format_version") if isinstance(data, dict) else None
    if version != FORMAT_VERSION:
        raise UserError(
            f"{path} has format version {version}, this program reads "
            f"{FORMAT_VERSION}: run datagen again"
        )
    try:
        data["origin"] = Origin(**data["origin"])
        data["left_out"] = {k: SkippedPairs(**v) for k, v in data["left_out"].items()}
        data["shards"] = [
            ShardFiles(s["pairs"], DataFile(**s["tokens"]), DataFile(**s["lengths"]))
            for s in data["shards"]
        ]
        return Manifest(**data)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{path} is not a manifest of shards ({error}): run datagen again"
        ) from None
