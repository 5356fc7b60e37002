"""Encoding of the splits of a problem: vocabulary, shards and checks of the text."""

import json
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from t2t_repro.data.encoded_pairs import EncodedPairs
from t2t_repro.data.manifest import MANIFEST_FILE, Manifest, Origin, read_manifest
from t2t_repro.data.shards import load_shards, write_part, write_shards
from t2t_repro.data.training_vocabulary import TrainingVocabulary
from t2t_repro.hparams import HParams
from t2t_repro.problems.checks import Checks
from t2t_repro.problems.problem import Problem
from t2t_repro.system.atomic_file import write_text_atomically
from t2t_repro.system.durability import make_folders
from t2t_repro.system.errors import UserError
from t2t_repro.system.locks import exclusive_lock
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.tokenizer import Tokenizer

ENCODED_SPLITS = ("train", "val")
CHECKS_FILE = "checks.json"
_PROGRESS_PAIRS = 500_000


def encode_splits(
    problem: Problem,
    hparams: HParams,
    data_dir: Path,
    say: Callable[[str], None],
    vocab_file: Path | None,
    fingerprints: Mapping[str, str],
    wanted: Sequence[str] = ENCODED_SPLITS,
    held_out: Problem | None = None,
    workers: int = 1,
) -> tuple[Path, Tokenizer, dict[str, EncodedPairs]]:
    """Builds the vocabulary and shards of some splits, or reuses existing ones.

    Args:
        problem: The corpus.
        hparams: Kind and size of the vocabulary.
        data_dir: Folder of the data.
        say: Called with each log line.
        vocab_file: Existing vocabulary to use. Default: builds one.
        fingerprints: Fingerprints of all existing splits.
        wanted: Splits to encode; without any, only the vocabulary is built.
        held_out: Source of the splits that the training split is compared with.
            Default: `problem`.
        workers: Number of processes that encode.

    Returns:
        The folder of the vocabulary and the shards, the tokenizer, and the encoded
        pairs by split.

    Raises:
        UserError: If data that must be encoded cannot be read.
    """
    vocabulary = TrainingVocabulary.choose(hparams, vocab_file)
    directory = _name_folder(problem, data_dir, vocabulary)
    job = _Preparation(problem, directory, fingerprints, say, wanted, workers)
    make_folders(data_dir)
    with _lock(data_dir, say), _folder(directory):
        splits = job.usable_shards()
        tokenizer = vocabulary.prepare(problem, directory, say)
        warnings = job.read_warnings()
        checks = None
        if warnings is None and wanted:
            others = [split for split in fingerprints if split != "train"]
            checks = Checks(problem, others, held_out)
        for split in wanted:
            if split in splits:
                say(f"reusing {directory / split}")
                continue
            pairs = problem.pairs(split)
            if checks is not None and split == "train":
                pairs = checks.collect(pairs)
            splits[split] = job.encode(split, pairs, tokenizer)
        if checks is not None:
            # The training text may be gone if its shards are complete.
            with suppress(UserError):
                warnings = checks.findings()
        if checks is not None and warnings is not None:
            results = {"data": fingerprints, "findings": warnings}
            text = json.dumps(results, indent=1) + "\n"
            write_text_atomically(directory / CHECKS_FILE, text)
        for warning in warnings or ():
            say(f"warning: {warning}")
    return directory, tokenizer, splits


def encode_part(
    problem: Problem,
    hparams: HParams,
    data_dir: Path,
    say: Callable[[str], None],
    vocab_file: Path | None,
    part: tuple[int, int],
    workers: int = 1,
) -> int:
    """Encodes every n-th training shard, for a later call of `encode_splits`.

    After that call, the shards are reused. Several machines that share `data_dir` can
    call this function at the same time.

    Args:
        problem: The corpus.
        hparams: Kind and size of the vocabulary.
        data_dir: Folder of the data.
        say: Called with each log line.
        vocab_file: Existing vocabulary to use. Default: the first machine builds one.
        part: Index of the part, from 0, and number of parts.
        workers: Number of processes that encode.

    Returns:
        The number of training shards that are whole, of all parts.

    Raises:
        UserError: If the training text cannot be read.
    """
    vocabulary = TrainingVocabulary.choose(hparams, vocab_file)
    directory = _name_folder(problem, data_dir, vocabulary)
    fingerprints = {"train": problem.fingerprint()}
    job = _Preparation(problem, directory, fingerprints, say, ("train",), workers)
    make_folders(data_dir)
    with _lock(data_dir, say), _folder(directory):
        if "train" in job.usable_shards():
            say(f"reusing {directory / 'train'}")
            return len(read_manifest(directory / "train").shards)
        tokenizer = vocabulary.prepare(problem, directory, say)
    return job.encode_part(tokenizer, part)


def _name_folder(
    problem: Problem, data_dir: Path, vocabulary: TrainingVocabulary
) -> Path:
    """Returns the folder of a problem's vocabulary and shards."""
    languages = f"{problem.source_lang}-{problem.target_lang}"
    return data_dir / "encoded" / f"{problem.name}.{languages}.{vocabulary.name}"


def _lock(data_dir: Path, say: Callable[[str], None]) -> AbstractContextManager[bool]:
    """Locks a folder of data, which several training runs may share."""
    waiting = f"waiting for another process that prepares data in {data_dir}"
    return exclusive_lock(data_dir, lambda: say(waiting))


@contextmanager
def _folder(directory: Path) -> Iterator[None]:
    """Creates a folder and removes it on exit if it is empty."""
    make_folders(directory)
    try:
        yield
    finally:
        for empty in (directory, directory.parent):
            with suppress(OSError):
                empty.rmdir()


@dataclass(frozen=True)
class _Preparation:
    """Steps of `encode_splits`, with its arguments as attributes."""

    problem: Problem
    directory: Path
    fingerprints: Mapping[str, str]
    say: Callable[[str], None]
    wanted: Sequence[str]
    workers: int

    def read_warnings(self) -> list[str] | None:
        """Returns the warnings saved for this data, or None if it was not checked."""
        path = self.directory / CHECKS_FILE
        try:
            checks = json.loads(path.read_text(encoding="utf-8"))
            return checks["findings"] if checks["data"] == self.fingerprints else None
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return None

    def usable_shards(self) -> dict[str, EncodedPairs]:
        """Opens the encoded splits, and deletes those that must be encoded again.

        If the training split must be, the vocabulary that was built from it and the
        other splits are deleted as well. Raises UserError, before anything is deleted,
        if the text cannot be read.
        """
        shards: dict[str, EncodedPairs] = {}
        for split in self.wanted:
            folder = self.directory / split
            if not (folder / MANIFEST_FILE).exists():
                continue
            try:
                vocabulary = load_tokenizer(self.directory).fingerprint
                fingerprint = self.fingerprints[split]
                shards[split] = load_shards(folder, vocabulary, fingerprint)
            except UserError as error:
                next(iter(self.problem.pairs(split)), None)
                reason = str(error).partition(": run datagen")[0]
                self.say(f"encoding {split} again: {reason}")
                whole = split == "train"
                for path in self.directory.glob("*" if whole else split):
                    if (path / MANIFEST_FILE).exists():
                        shutil.rmtree(path)
                    elif path.name.startswith("vocab."):
                        path.unlink()
                if whole:
                    break
        return shards

    def encode(
        self, split: str, pairs: Iterable[tuple[str, str]], tokenizer: Tokenizer
    ) -> EncodedPairs:
        """Encodes a split, reports skipped pairs and returns the shards."""
        origin, folder = self._describe(split), self.directory / split
        counted = self._report_progress(split, pairs)
        manifest = write_shards(
            counted, tokenizer, folder, split, origin, workers=self.workers
        )
        self.say(_summary(manifest))
        return load_shards(folder)

    def encode_part(self, tokenizer: Tokenizer, part: tuple[int, int]) -> int:
        """Encodes a part of the training shards; returns the number of whole ones."""
        origin = self._describe("train")
        counted = self._report_progress("train", self.problem.pairs("train"))
        folder = self.directory / "train"
        return write_part(
            counted, tokenizer, folder, origin, part, workers=self.workers
        )

    def _describe(self, split: str) -> Origin:
        """Prints what is encoded and returns it."""
        problem = self.problem
        description = problem.description(split)
        self.say(f"encoding {problem.name} {split}: {description}")
        return Origin(
            problem.name,
            self.fingerprints[split],
            description,
            problem.source_lang,
            problem.target_lang,
        )

    def _report_progress(
        self, split: str, pairs: Iterable[tuple[str, str]]
    ) -> Iterator[tuple[str, str]]:
        """Yields the pairs; reports their number every `_PROGRESS_PAIRS` pairs."""
        began, total = time.monotonic(), self.problem.count(split)
        for number, pair in enumerate(pairs, 1):
            if number % _PROGRESS_PAIRS == 0:
                speed = number / (time.monotonic() - began)
                line = f"  {number:,} pairs  {speed:,.0f} pairs/s"
                if total is not None:
                    left = timedelta(seconds=round((total - number) / speed))
                    line += f"  ETA {left}"
                self.say(line)
            yield pair


def _summary(manifest: Manifest) -> str:
    """Describes an encoded split and its skipped pairs in one line."""
    skipped = "".join(
        f"; skipped {pairs.count:,} ({reason}, first at line {pairs.first[0]})"
        for reason, pairs in manifest.left_out.items()
        if pairs.count
    )
    return (
        f"  {manifest.pairs:,} pairs, {manifest.source_tokens:,} source and "
        f"{manifest.target_tokens:,} target tokens{skipped}"
    )
