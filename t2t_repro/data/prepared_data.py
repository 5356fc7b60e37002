"""Preparation of a problem for training: vocabulary and encoded splits."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from t2t_repro.data.encoded_pairs import EncodedPairs
from t2t_repro.data.manifest import Manifest, read_manifest
from t2t_repro.data.split_encoding import ENCODED_SPLITS, encode_splits
from t2t_repro.hparams import HParams
from t2t_repro.problems.corpora import Corpus, JointCorpora
from t2t_repro.problems.problem import Problem, hash_of_pairs
from t2t_repro.system.errors import UserError
from t2t_repro.tokenizers.tokenizer import Tokenizer


@dataclass(frozen=True)
class PreparedData:
    """Vocabulary and encoded data of a problem.

    Attributes:
        directory: Folder of the vocabulary and the encoded splits.
        tokenizer: Tokenizer of the vocabulary.
        train: Encoded training pairs.
        val: Encoded validation pairs; None without validation text.
        folders: Folder of the training shards of each corpus.
        sizes: Number of training pairs of each corpus.
    """

    directory: Path
    tokenizer: Tokenizer
    train: EncodedPairs
    val: EncodedPairs | None
    folders: tuple[Path, ...]
    sizes: tuple[int, ...]


def prepare(
    problem: Problem,
    hparams: HParams,
    data_dir: Path,
    say: Callable[[str], None],
    vocab_file: Path | None = None,
    fingerprints: Mapping[str, str] | None = None,
    workers: int = 1,
) -> PreparedData:
    """Builds the vocabulary and shards of a problem, or reuses existing ones.

    Shards that are damaged, or were made from other data or with another vocabulary,
    are encoded again. For the training split, this includes the vocabulary.

    Args:
        problem: The corpus.
        hparams: Kind and size of the vocabulary.
        data_dir: Folder for the results, which are written to its subfolder
            ``encoded``.
        say: Called with each log line.
        vocab_file: Existing vocabulary to use. Default: builds one.
        fingerprints: Precomputed fingerprints by split (see `fingerprint`); missing
            ones are computed.
        workers: Number of processes that encode.

    Raises:
        UserError: If data that must be encoded cannot be read.
    """
    directory, tokenizer, splits = encode_splits(
        problem,
        hparams,
        data_dir,
        say,
        vocab_file,
        _fingerprints(problem, fingerprints or {}),
        list(filter(problem.has, ENCODED_SPLITS)),
        workers=workers,
    )
    train, val = splits["train"], splits.get("val")
    folders = (directory / "train",)
    return PreparedData(directory, tokenizer, train, val, folders, (len(train),))


def prepare_corpora(
    corpora: Sequence[Corpus],
    hparams: HParams,
    say: Callable[[str], None],
    vocab_file: Path | None,
    fingerprints: Mapping[str, str],
    workers: int = 1,
    shard_dir: Path | None = None,
) -> PreparedData:
    """Builds a common vocabulary and the shards of several corpora, or reuses them.

    The last corpus provides the validation pairs. Each corpus is encoded in its own
    folder. The vocabulary is built from the training texts of all corpora and kept in
    the folder of the last one.

    Args:
        corpora: At least two corpora.
        hparams: Kind and size of the vocabulary.
        say: Called with each log line.
        vocab_file: Existing vocabulary to use. Default: builds one.
        fingerprints: Fingerprints of the held-out splits.
        workers: Number of processes that encode.
        shard_dir: Folder for the results, in a subfolder with the name of each corpus's
            folder. Default: the folder of each corpus.

    Raises:
        UserError: If data that must be encoded cannot be read, or two folders have the
            same name in `shard_dir`.
    """
    folders = _find_folders(corpora, shard_dir)
    last = corpora[-1]
    if vocab_file is None:
        joint = JointCorpora(corpora)
        directory, tokenizer, _ = encode_splits(
            joint, hparams, folders[-1], say, None, {}, wanted=()
        )
        vocab_file = directory / tokenizer.file_name
    wanted = list(filter(last.problem.has, ENCODED_SPLITS))
    encoded = []
    for corpus, folder in zip(corpora, folders, strict=True):
        say(f"corpus {corpus.name}, weight {corpus.weight}")
        encoded.append(
            encode_splits(
                corpus.problem,
                hparams,
                folder,
                say,
                vocab_file,
                {**fingerprints, "train": corpus.fingerprint},
                wanted=wanted if corpus is last else ("train",),
                held_out=last.problem,
                workers=workers,
            )
        )
    directory, tokenizer, splits = encoded[-1]
    train = [splits["train"] for _, _, splits in encoded]
    return PreparedData(
        directory,
        tokenizer,
        EncodedPairs.join(train),
        splits.get("val"),
        tuple(folder / "train" for folder, _, _ in encoded),
        tuple(map(len, train)),
    )


def _find_folders(corpora: Sequence[Corpus], shard_dir: Path | None) -> list[Path]:
    """Returns the folder for the results of each corpus; see `prepare_corpora`."""
    if shard_dir is None:
        return [corpus.folder for corpus in corpora]
    folders = [shard_dir / corpus.folder.resolve().name for corpus in corpora]
    if len(set(folders)) < len(folders):
        raise UserError(
            f"--shard_dir {shard_dir}: two folders of --data_dir have the same name; "
            "rename one of them, because the shards of each are in a subfolder of its "
            "name"
        )
    return folders


def fingerprint(problem: Problem, split: str) -> str:
    """Returns a fingerprint of the data of a split.

    The training split uses `problem.fingerprint`; other splits are hashed.

    Raises:
        UserError: If the split cannot be read, or a split for scores has no text.
    """
    if split == "train":
        return problem.fingerprint()
    return hash_of_pairs(_require_text(problem, split))


def _require_text(problem: Problem, split: str) -> Iterator[tuple[str, str]]:
    """Yields the pairs of a split; raises UserError if all targets are blank."""
    has_text = False
    for pair in problem.pairs(split):
        has_text = has_text or bool(pair[1].strip())
        yield pair
    if not has_text:
        raise UserError(
            f"{problem.description(split)}: all targets are blank; check the problem's "
            "files"
        )


def _fingerprints(problem: Problem, known: Mapping[str, str]) -> dict[str, str]:
    """Returns the fingerprint of every existing split."""
    fingerprints = {
        split: known.get(split) or fingerprint(problem, split)
        for split in filter(problem.has, ENCODED_SPLITS)
    }
    # The test split is optional here; it is needed only for scoring.
    with suppress(UserError):
        fingerprints["test"] = known.get("test") or fingerprint(problem, "test")
    return fingerprints


def manifests(directory: Path) -> dict[str, Manifest]:
    """Returns the manifest of each encoded split in a folder."""
    splits = (split for split in ENCODED_SPLITS if (directory / split).exists())
    return {split: read_manifest(directory / split) for split in splits}
