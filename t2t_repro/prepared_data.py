"""A problem made ready for training: its vocabulary and its encoded splits."""

import hashlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from t2t_repro.data.encoded_pairs import EncodedPairs
from t2t_repro.data.manifest import Manifest, Origin, read_manifest
from t2t_repro.data.shards import load_shards, write_shards
from t2t_repro.data.tokenizer import Tokenizer
from t2t_repro.data.tokenizers import load_tokenizer
from t2t_repro.data.vocabulary import SUFFIXES, build_vocabulary
from t2t_repro.errors import UserError
from t2t_repro.hparams import HParams
from t2t_repro.problems.problem import Problem

Say = Callable[[str], None]

ENCODED_SPLITS = ("train", "val")
_PROGRESS_PAIRS = 500_000


@dataclass(frozen=True)
class PreparedData:
    """What training reads.

    Attributes:
        directory: the folder of the vocabulary and the encoded splits.
        tokenizer: the vocabulary.
        train: the encoded training pairs.
        val: the encoded validation pairs.
    """

    directory: Path
    tokenizer: Tokenizer
    train: EncodedPairs
    val: EncodedPairs


def prepare(
    problem: Problem,
    hparams: HParams,
    data_dir: Path,
    say: Say,
    vocab_file: Path | None = None,
) -> PreparedData:
    """Builds what is missing of a problem's vocabulary and shards, reuses the rest.

    Args:
        problem: the corpus.
        hparams: kind and size of the vocabulary.
        data_dir: the vocabulary and shards go to a folder ``encoded`` in it.
        say: is told what happens, a line at a time.
        vocab_file: use this vocabulary instead of building one.

    Raises:
        UserError: the data cannot be read, a shard is damaged, or the shards were
            made from other data or with another vocabulary.
    """
    directory = encoded_directory(problem, hparams, data_dir, vocab_file)
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer = _vocabulary(problem, hparams, directory, say, vocab_file)
    fingerprint = problem.fingerprint()
    for split in ENCODED_SPLITS:
        if (directory / split).exists():
            say(f"reusing {directory / split}")
        else:
            _encode(problem, fingerprint, split, tokenizer, directory, say)
    splits = {
        split: load_shards(directory / split, tokenizer.fingerprint, fingerprint)
        for split in ENCODED_SPLITS
    }
    return PreparedData(directory, tokenizer, splits["train"], splits["val"])


def encoded_directory(
    problem: Problem, hparams: HParams, data_dir: Path, vocab_file: Path | None
) -> Path:
    """Names the folder of a problem's shards after all that decides their bytes."""
    languages = f"{problem.source_lang}-{problem.target_lang}"
    if vocab_file is None:
        vocabulary = f"{hparams.tokenizer}-{hparams.vocab_size}"
    else:
        tokenizer_bytes = _read_vocabulary(vocab_file)
        vocabulary = hashlib.sha256(tokenizer_bytes).hexdigest()[:12]
    return data_dir / "encoded" / f"{problem.name}.{languages}.{vocabulary}"


def _read_vocabulary(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"--vocab_file {path}: {error.strerror}") from None


def _vocabulary(
    problem: Problem,
    hparams: HParams,
    directory: Path,
    say: Say,
    vocab_file: Path | None,
) -> Tokenizer:
    """Loads the folder's vocabulary, having built or copied it if there is none."""
    suffix = vocab_file.suffix if vocab_file else SUFFIXES[hparams.tokenizer]
    path = directory / f"vocab{suffix}"
    if path.exists():
        say(f"reusing {path}")
    elif vocab_file is not None:
        load_tokenizer(vocab_file)
        aside = path.with_name(f".{path.name}")
        shutil.copyfile(vocab_file, aside)
        aside.replace(path)
    else:
        say(f"building a vocabulary of {hparams.vocab_size:,} subwords")
        build_vocabulary(hparams.tokenizer, _lines(problem), hparams.vocab_size, path)
    return load_tokenizer(path)


def _lines(problem: Problem) -> Iterator[str]:
    """Yields the training text, source and target alike: the vocabulary is shared."""
    for pair in problem.pairs("train"):
        yield from pair


def _encode(
    problem: Problem,
    fingerprint: str,
    split: str,
    tokenizer: Tokenizer,
    directory: Path,
    say: Say,
) -> None:
    """Encodes a split and says what was left out."""
    say(f"encoding {problem.name} {split}")
    told = 0

    def progress(read: int) -> None:
        nonlocal told
        if read - told >= _PROGRESS_PAIRS:
            told = read
            say(f"  {read:,} pairs")

    origin = Origin(
        problem.name,
        fingerprint,
        problem.description(split),
        problem.source_lang,
        problem.target_lang,
    )
    manifest = write_shards(
        problem.pairs(split),
        tokenizer,
        directory / split,
        split,
        origin,
        progress=progress,
    )
    say(_summary(manifest))


def _summary(manifest: Manifest) -> str:
    """Describes an encoded split in one line, pairs left out included."""
    left_out = "".join(
        f"; {found.count:,} left out ({reason}, first at line {found.first[0]})"
        for reason, found in manifest.left_out.items()
        if found.count
    )
    return (
        f"  {manifest.pairs:,} pairs, {manifest.source_tokens:,} source and "
        f"{manifest.target_tokens:,} target tokens{left_out}"
    )


def describe(directory: Path) -> dict[str, Manifest]:
    """Returns the manifest of every encoded split of a folder."""
    return {split: read_manifest(directory / split) for split in ENCODED_SPLITS}
