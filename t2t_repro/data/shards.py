"""Encoded shards on disk: written once by datagen, memory-mapped by training.

A split is one directory: per shard `train-00000-of-00004.tokens.npy` (ids of the
pairs one after another, source then target, each with EOS) and
`train-00000-of-00004.lengths.npy` (int32 (pairs, 2)), `manifest.json`, and
`skipped_pairs.tsv`, which lists the pairs that were not encoded. The directory is whole
or absent.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from t2t_repro.data import manifest
from t2t_repro.data.encoded_pairs import EncodedPairs
from t2t_repro.data.manifest import DataFile, Manifest, Origin
from t2t_repro.data.shard_encoding import encode_pairs
from t2t_repro.data.shard_writer import ShardWriter
from t2t_repro.system.atomic_dir import whole_folder
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.tokenizer import Tokenizer


def write_shards(
    pairs: Iterable[tuple[str, str]],
    tokenizer: Tokenizer,
    directory: str | os.PathLike[str],
    split: str,
    origin: Origin,
    *,
    pairs_per_shard: int = 500_000,
    progress: Callable[[int], None] | None = None,
) -> Manifest:
    """Encodes a split on all cores and writes its shards, replacing older ones.

    Pairs with an empty side are left out and listed.

    Args:
        pairs: source and target lines.
        tokenizer: encodes both sides.
        directory: of the split, to be made.
        split: how the files' names begin.
        origin: where the pairs come from.
        pairs_per_shard: of every shard but the last; bounds the memory.
        progress: called now and then with the number of pairs read so far.

    Raises:
        UserError: no pair is left to encode, or `directory` holds other files.
    """
    final = Path(directory)
    _refuse_foreign(final)
    with whole_folder(final) as aside:
        ids = max(tokenizer.vocab_size, tokenizer.target.vocab_size)
        writer = ShardWriter(aside, split, ids, pairs_per_shard)
        for encoded, read in encode_pairs(pairs, tokenizer, writer.left_out):
            writer.add(*encoded)
            if progress is not None:
                progress(read)
        return writer.finish(origin, tokenizer)


def load_shards(
    directory: str | os.PathLike[str],
    vocabulary_fingerprint: str | None = None,
    problem_fingerprint: str | None = None,
) -> EncodedPairs:
    """Opens the shards of a split; ids stay on disk, memory-mapped.

    Args:
        directory: as given to `write_shards`.
        vocabulary_fingerprint: of the vocabulary that must have encoded them.
        problem_fingerprint: of the data that they must be made from.

    Raises:
        UserError: a file is missing, truncated or damaged, or was made with another
            vocabulary or from other data.
    """
    root = Path(directory)
    found = manifest.read_manifest(root)
    again = "run datagen again"
    if vocabulary_fingerprint not in (None, found.vocabulary_fingerprint):
        raise UserError(
            f"{root} was encoded with another vocabulary (fingerprint "
            f"{found.vocabulary_fingerprint[:12]}, not "
            f"{str(vocabulary_fingerprint)[:12]}): {again}, or use that vocabulary"
        )
    if problem_fingerprint not in (None, found.origin.fingerprint):
        raise UserError(
            f"{root} was made from other data of problem {found.origin.problem} "
            f"(fingerprint ends in {found.origin.fingerprint[-12:]}, not "
            f"{str(problem_fingerprint)[-12:]}): {again}"
        )
    tokens = [_open(root, shard.tokens, mapped=True) for shard in found.shards]
    lengths = [_open(root, shard.lengths, mapped=False) for shard in found.shards]
    try:
        return EncodedPairs(tokens, lengths)
    except ValueError as error:
        raise UserError(f"{root} is damaged ({error}): {again}") from None


def _refuse_foreign(directory: Path) -> None:
    """Raises UserError if a directory holds anything but shards."""
    if not directory.exists():
        return
    if not directory.is_dir():
        raise UserError(f"{directory} is a file: name a directory for the shards")
    if any(directory.iterdir()) and not (directory / manifest.MANIFEST_FILE).exists():
        raise UserError(
            f"{directory} holds files that are no shards: name another directory, "
            "or empty it"
        )


def _open(directory: Path, file: DataFile, mapped: bool) -> npt.NDArray[np.integer]:
    """Opens a file of whole numbers, left on disk where `mapped`.

    Raises UserError if its size or hash is not the manifest's.
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
    if DataFile.of(path) != file:
        raise UserError(
            f"{path} is damaged, its sha256 is not the manifest's: run datagen again"
        )
    try:
        found = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
        # An archive of arrays would be opened, too.
        if not isinstance(found, np.ndarray) or found.dtype.kind not in "iu":
            raise ValueError("no array of whole numbers")
    except (ValueError, OSError, EOFError, BadZipFile) as error:
        raise UserError(f"{path} is damaged ({error}): run datagen again") from None
    return found
