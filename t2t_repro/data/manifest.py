"""Manifest of a directory of shards: contents, origin and checksums."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

from t2t_repro.system.errors import UserError

MANIFEST_FILE = "manifest.json"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class DataFile:
    """One file of a shard.

    Attributes:
        name: File name without directory.
        bytes: Size in bytes.
        sha256: Hexadecimal SHA-256 of the contents.
    """

    name: str
    bytes: int
    sha256: str

    def __post_init__(self) -> None:
        """Raises TypeError, or ValueError for a name outside of the directory."""
        _check_types({str: (self.name, self.sha256), int: (self.bytes,)})
        if Path(self.name).name != self.name or self.name == "..":
            raise ValueError(f"{self.name!r} is not a file name")

    @classmethod
    def from_path(cls, path: Path) -> "DataFile":
        """Returns the name, size and hash of a file."""
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return cls(path.name, path.stat().st_size, digest)


@dataclass(frozen=True)
class ShardFiles:
    """Number of pairs and the two files of a shard."""

    pairs: int
    tokens: DataFile
    lengths: DataFile

    def __post_init__(self) -> None:
        """Raises TypeError if a field has another type."""
        _check_types({int: (self.pairs,)})


@dataclass(frozen=True)
class SkippedPairs:
    """Pairs that were not encoded for the same reason.

    Attributes:
        count: Number of pairs.
        first: Line numbers of the first of these pairs, from 1.
    """

    count: int
    first: list[int]

    def __post_init__(self) -> None:
        """Raises TypeError if a field has another type."""
        _check_types({int: (self.count, *self.first)})


@dataclass(frozen=True)
class Origin:
    """Origin of the pairs of a split.

    Attributes:
        problem: Name of the problem.
        fingerprint: Fingerprint of the split's data.
        description: Readable description of the split.
        source_lang: Source language.
        target_lang: Target language.
    """

    problem: str
    fingerprint: str
    description: str
    source_lang: str
    target_lang: str

    def __post_init__(self) -> None:
        """Raises TypeError if a field has another type."""
        _check_types({str: astuple(self)})


@dataclass(frozen=True)
class Manifest:
    """Contents of a directory of shards.

    Attributes:
        split: Name of the split.
        origin: Origin of the pairs.
        vocabulary_fingerprint: SHA-256 of the vocabulary file.
        vocab_size: Number of ids in the vocabulary.
        pairs: Number of encoded pairs.
        source_tokens: Number of source tokens, EOS included.
        target_tokens: Number of target tokens, EOS included.
        left_out: Skipped pairs by reason.
        shards: Files of the shards, in the order of the pairs.
        format_version: Version of the manifest format.
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

    def __post_init__(self) -> None:
        """Raises TypeError if a field has another type."""
        numbers = self.vocab_size, self.pairs, self.source_tokens, self.target_tokens
        _check_types({str: (self.split, self.vocabulary_fingerprint), int: numbers})

    def to_json(self) -> str:
        """Returns the manifest as indented JSON that ends in a line break."""
        return json.dumps(asdict(self), ensure_ascii=False, indent=1) + "\n"


def _check_types(values: Mapping[type, Iterable[object]]) -> None:
    """Raises TypeError if a value is not of the type that is its key."""
    for kind, group in values.items():
        for value in group:
            if type(value) is not kind:
                raise TypeError(f"{value!r:.40} is not of type {kind.__name__}")


def read_manifest(directory: Path) -> Manifest:
    """Reads `manifest.json` of a directory of shards.

    Raises:
        UserError: If the file is missing or is not a manifest of this version.
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
            f"{path} has format version {version}, expected {FORMAT_VERSION}: "
            "run datagen again"
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
