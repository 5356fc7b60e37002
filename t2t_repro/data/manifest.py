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
    """One file of a shard.

    Attributes:
        name: File name within the directory.
        bytes: Size of the file.
        sha256: Hash of the file's bytes, hex.
    """

    name: str
    bytes: int
    sha256: str

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
class LeftOut:
    """Pairs that were not encoded for one reason.

    Attributes:
        count: How many.
        first: Numbers of the first of them, counted from 1 in the order read.
    """

    count: int
    first: list[int]


@dataclass(frozen=True)
class Origin:
    """Where the pairs of a split come from.

    Attributes:
        problem: Name of the problem.
        fingerprint: Identifies the problem's data.
        description: What the split is, for people.
        source_lang: Language of the sources.
        target_lang: Language of the targets.
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
        split: `train`, `val` or `test`.
        origin: Where the pairs come from.
        vocabulary_fingerprint: Hash of the vocabulary file the ids belong to.
        vocab_size: Number of ids of that vocabulary.
        pairs: Pairs encoded.
        source_tokens: Source tokens, EOS included.
        target_tokens: Target tokens, EOS included.
        left_out: Pairs left out, by reason.
        shards: The files, in the order of the pairs.
        format_version: Version of this layout.
    """

    split: str
    origin: Origin
    vocabulary_fingerprint: str
    vocab_size: int
    pairs: int
    source_tokens: int
    target_tokens: int
    left_out: dict[str, LeftOut]
    shards: list[ShardFiles]
    format_version: int = FORMAT_VERSION

    def to_json(self) -> str:
        """Returns the manifest as indented JSON that ends in a line break."""
        return json.dumps(asdict(self), ensure_ascii=False, indent=1) + "\n"


def read_manifest(directory: Path) -> Manifest:
    """Reads `manifest.json` of a directory of shards.

    Raises:
        UserError: when it is missing, not JSON, or of another version or layout.
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
        data["left_out"] = {k: LeftOut(**v) for k, v in data["left_out"].items()}
        data["shards"] = [
            ShardFiles(
                shard["pairs"],
                DataFile(**shard["tokens"]),
                DataFile(**shard["lengths"]),
            )
            for shard in data["shards"]
        ]
        found = Manifest(**data)
        for shard in found.shards:
            for file in (shard.tokens, shard.lengths):
                if Path(file.name).name != file.name or file.name == "..":
                    raise ValueError(f"a shard is called {file.name!r}")
        return found
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{path} is not a manifest of shards ({error}): run datagen again"
        ) from None
