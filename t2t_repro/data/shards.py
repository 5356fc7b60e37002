"""Encoded shards on disk: written once by datagen, memory-mapped by training.

The directory of a split is written atomically and contains:

- `train-00000-of-00004.tokens.npy` for each shard: concatenated ids of the pairs, each
  pair as source and target, both ending in EOS;
- `train-00000-of-00004.lengths.npy` for each shard: int32 (pairs, 2);
- `manifest.json`;
- `skipped_pairs.tsv`: pairs that were not encoded.
"""

import hashlib
import shutil
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from t2t_repro.data import manifest
from t2t_repro.data.encoded_pairs import EncodedPairs
from t2t_repro.data.manifest import DataFile, Manifest, Origin
from t2t_repro.data.shard_encoding import Chunk, encode_chunks
from t2t_repro.data.shard_writer import ShardWriter, whole_shards
from t2t_repro.system.atomic_dir import put_in_place
from t2t_repro.system.damage import DAMAGED_ARRAY
from t2t_repro.system.durability import make_folders
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.tokenizer import Tokenizer

PAIRS_PER_SHARD = 500_000  # Limits the memory.
_UNFINISHED = ".unfinished-"
"""Beginning of the name of a folder with the shards of an unfinished split."""


def write_shards(
    pairs: Iterable[tuple[str, str]],
    tokenizer: Tokenizer,
    directory: Path,
    split: str,
    origin: Origin,
    *,
    pairs_per_shard: int = PAIRS_PER_SHARD,
    workers: int = 1,
) -> Manifest:
    """Encodes a split and writes its shards, replacing existing ones.

    Pairs with an empty side are skipped and listed in `skipped_pairs.tsv`. If the call
    is interrupted, the next one keeps the shards that are whole. The files do not
    depend on interruptions or on `workers`.

    Args:
        pairs: Source and target lines.
        tokenizer: Encodes both sides.
        directory: Folder of the split; it is created.
        split: Name of the split and prefix of the file names.
        origin: Origin of the pairs.
        pairs_per_shard: Number of pairs in every shard except the last.
        workers: Number of processes that encode.

    Raises:
        UserError: If all pairs are skipped, or `directory` has other files than shards.
    """
    replaceable = not directory.exists() or not any(directory.iterdir())
    if not replaceable and not (directory / manifest.MANIFEST_FILE).exists():
        raise UserError(
            f"{directory} contains no shards and will not be replaced: choose another "
            "directory, or delete it"
        )
    folder = _make_unfinished_folder(directory, tokenizer, origin, pairs_per_shard)
    try:
        writer = ShardWriter(folder, pairs_per_shard)
        _encode(writer, writer.missing_chunks(pairs), tokenizer, workers)
        fingerprint, size = tokenizer.fingerprint, int(tokenizer.vocab_size)
        contents = writer.finish(split, origin, fingerprint, size)
        put_in_place(folder, directory)
    finally:
        if not whole_shards(folder):
            shutil.rmtree(folder, ignore_errors=True)
    return contents


def write_part(
    pairs: Iterable[tuple[str, str]],
    tokenizer: Tokenizer,
    directory: Path,
    origin: Origin,
    part: tuple[int, int],
    *,
    pairs_per_shard: int = PAIRS_PER_SHARD,
    workers: int = 1,
) -> int:
    """Encodes every n-th shard of a split, for a later call of `write_shards`.

    Several machines that share a folder can call it at the same time.

    Args:
        pairs: Source and target lines.
        tokenizer: Encodes both sides.
        directory: Folder of the split, which stays as it is.
        origin: Origin of the pairs.
        part: Index of the part, from 0, and number of parts.
        pairs_per_shard: Number of pairs in every shard except the last.
        workers: Number of processes that encode.

    Returns:
        The number of shards that are whole, of all parts.
    """
    # The folder stays without a whole shard, because another machine may write one.
    folder = _make_unfinished_folder(directory, tokenizer, origin, pairs_per_shard)
    writer = ShardWriter(folder, pairs_per_shard)
    _encode(writer, writer.missing_chunks(pairs, part), tokenizer, workers)
    return len(whole_shards(folder))


def _encode(
    writer: ShardWriter, chunks: Iterable[Chunk], tokenizer: Tokenizer, workers: int
) -> None:
    """Encodes chunks and writes their shards; ids take two bytes if they fit."""
    ids = max(tokenizer.vocab_size, tokenizer.target.vocab_size)
    dtype = np.uint16 if ids <= 1 << 16 else np.int32
    writer.add(encode_chunks(chunks, tokenizer.make_plain, dtype, workers))


def _make_unfinished_folder(
    directory: Path, tokenizer: Tokenizer, origin: Origin, pairs_per_shard: int
) -> Path:
    """Returns the folder for the shards of an unfinished split, which may have some.

    Shards of other data or of another vocabulary are deleted.
    """
    parts = origin.fingerprint, tokenizer.fingerprint, str(pairs_per_shard)
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
    prefix = f"{_UNFINISHED}{directory.name}-"
    folder = directory.with_name(f"{prefix}{key}")
    for other in directory.parent.glob(f"{prefix}*"):
        if other != folder:
            shutil.rmtree(other)
    make_folders(folder)
    return folder


def load_shards(
    directory: Path,
    vocabulary_fingerprint: str | None = None,
    problem_fingerprint: str | None = None,
) -> EncodedPairs:
    """Opens the shards of a split; token ids are memory-mapped.

    Args:
        directory: Folder written by `write_shards`.
        vocabulary_fingerprint: Expected fingerprint of the vocabulary. Default: any.
        problem_fingerprint: Expected fingerprint of the data. Default: any.

    Raises:
        UserError: If a file is missing or damaged, or was made with another vocabulary
            or from other data.
    """
    contents = manifest.read_manifest(directory)
    remedy = "run datagen again"
    if vocabulary_fingerprint not in (None, contents.vocabulary_fingerprint):
        raise UserError(
            f"{directory} was encoded with another vocabulary (fingerprint "
            f"{contents.vocabulary_fingerprint[:12]}, not "
            f"{str(vocabulary_fingerprint)[:12]}): {remedy}, or use that vocabulary"
        )
    origin = contents.origin
    if problem_fingerprint not in (None, origin.fingerprint):
        raise UserError(
            f"{directory} was made from other data of problem {origin.problem} "
            f"(fingerprint ends in {origin.fingerprint[-12:]}, not "
            f"{str(problem_fingerprint)[-12:]}): {remedy}"
        )
    shards = contents.shards
    tokens = [_open(directory, shard.tokens, mapped=True) for shard in shards]
    lengths = [_open(directory, shard.lengths, mapped=False) for shard in shards]
    try:
        return EncodedPairs(tokens, lengths)
    except ValueError as error:
        raise UserError(f"{directory} is damaged ({error}): {remedy}") from None


def _open(directory: Path, file: DataFile, mapped: bool) -> npt.NDArray[np.integer]:
    """Opens an integer array file, memory-mapped if `mapped`.

    Raises UserError if its size or hash differs from the manifest.
    """
    path = directory / file.name
    try:
        size = path.stat().st_size
    except OSError:
        raise UserError(f"{path} is missing: run datagen again") from None
    if size != file.bytes:
        raise UserError(
            f"{path} has {size:,} bytes instead of {file.bytes:,}: run datagen again"
        )
    if DataFile.from_path(path) != file:
        raise UserError(
            f"{path} is damaged (sha256 differs from the manifest): run datagen again"
        )
    try:
        array = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
        # np.load also accepts archives of several arrays.
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "iu":
            raise ValueError("not an integer array")
    except (*DAMAGED_ARRAY, OSError) as error:
        raise UserError(f"{path} is damaged ({error}): run datagen again") from None
    return array
