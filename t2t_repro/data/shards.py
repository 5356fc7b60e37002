"""Encoded shards on disk: written once by datagen, memory-mapped by training.

The directory of a split is written atomically and contains:

- `train-00000-of-00004.tokens.npy` for each shard: concatenated ids of the pairs, each
  pair as source and target, both ending in EOS;
- `train-00000-of-00004.lengths.npy` for each shard: int32 (pairs, 2);
- `manifest.json`;
- `skipped_pairs.tsv`: pairs that were not encoded.
"""

from collections.abc import Iterable
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
    directory: Path,
    split: str,
    origin: Origin,
    *,
    pairs_per_shard: int = 500_000,
) -> Manifest:
    """Encodes a split on all cores and writes its shards, replacing existing ones.

    Pairs with an empty side are skipped and listed in `skipped_pairs.tsv`.

    Args:
        pairs: Source and target lines.
        tokenizer: Encodes both sides.
        directory: Folder of the split; it is created.
        split: Name of the split and prefix of the file names.
        origin: Origin of the pairs.
        pairs_per_shard: Number of pairs in every shard except the last; limits the
            memory.

    Raises:
        UserError: If all pairs are skipped, or `directory` has other files than shards.
    """
    replaceable = not directory.exists() or not any(directory.iterdir())
    if not replaceable and not (directory / manifest.MANIFEST_FILE).exists():
        raise UserError(
            f"{directory} contains no shards and will not be replaced: choose another "
            "directory, or delete it"
        )
    with whole_folder(directory) as temporary:
        ids = max(tokenizer.vocab_size, tokenizer.target.vocab_size)
        writer = ShardWriter(temporary, split, ids, pairs_per_shard)
        for encoded in encode_pairs(pairs, tokenizer, writer.left_out):
            writer.add(*encoded)
        return writer.finish(origin, tokenizer)


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
    except (ValueError, OSError, EOFError, BadZipFile) as error:
        raise UserError(f"{path} is damaged ({error}): run datagen again") from None
    return array
