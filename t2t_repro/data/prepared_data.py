"""A problem made ready for training: its vocabulary and its encoded splits."""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from t2t_repro.data.encoded_pairs import EncodedPairs
from t2t_repro.data.manifest import Manifest, Origin, read_manifest
from t2t_repro.data.shards import load_shards, write_shards
from t2t_repro.hparams import HParams
from t2t_repro.problems.checks import Checks
from t2t_repro.problems.problem import Problem, hash_of_pairs
from t2t_repro.problems.trees import TREES
from t2t_repro.system.atomic_file import write_bytes_atomically, write_text_atomically
from t2t_repro.system.errors import UserError
from t2t_repro.system.locks import exclusive_lock
from t2t_repro.tokenizers.load import load_tokenizer
from t2t_repro.tokenizers.tokenizer import Tokenizer
from t2t_repro.tokenizers.vocabulary import (
    SUFFIXES,
    VocabularyTooLargeError,
    build_vocabulary,
)

ENCODED_SPLITS = ("train", "val")
CHECKS_FILE = "checks.json"
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
    say: Callable[[str], None],
    vocab_file: Path | None = None,
    renew: bool = False,
    fingerprints: Mapping[str, str] | None = None,
) -> PreparedData:
    """Builds a problem's vocabulary and shards, or reuses those that are there.

    Args:
        problem: the corpus.
        hparams: kind and size of the vocabulary.
        data_dir: all goes to its folder ``encoded``.
        say: is told what happens, a line at a time.
        vocab_file: a vocabulary to use instead of building one.
        renew: make everything anew if something is damaged or of other data.
        fingerprints: of splits, as far as they are known (see `fingerprint`).

    Raises:
        UserError: the data cannot be read; or, without `renew`, a shard is damaged or
            was made from other data or with another vocabulary.
    """
    if vocab_file is not None and vocab_file.is_dir():
        raise UserError(f"--vocab_file {vocab_file} is a folder; name the file in it")
    vocabulary = f"{hparams.tokenizer}-{hparams.vocab_size}"
    if vocab_file is not None:
        vocabulary = load_tokenizer(vocab_file).fingerprint[:12]
    languages = f"{problem.source_lang}-{problem.target_lang}"
    directory = data_dir / "encoded" / f"{problem.name}.{languages}.{vocabulary}"
    fingerprints = _fingerprints(problem, fingerprints or {})
    job = _Preparation(problem, hparams, directory, fingerprints, say)
    data_dir.mkdir(parents=True, exist_ok=True)
    waiting = f"waiting for another process that prepares data in {data_dir}"
    # Two trainings may share the folder.
    with exclusive_lock(data_dir, lambda: say(waiting)), _folder(directory):
        if renew:
            job.remove_unusable()
        tokenizer = job.vocabulary(vocab_file)
        warnings = job.known_warnings()
        checks = None
        if warnings is None:
            held_out = [split for split in fingerprints if split != "train"]
            checks = Checks(problem, held_out)
        splits = {}
        for split in ENCODED_SPLITS:
            if (directory / split).exists():
                say(f"reusing {directory / split}")
            else:
                pairs = problem.pairs(split)
                if checks is not None and split == "train":
                    pairs = checks.collect(pairs)
                job.encode(split, pairs, tokenizer)
            splits[split] = load_shards(
                directory / split, tokenizer.fingerprint, fingerprints[split]
            )
        if checks is not None:
            warnings = checks.findings()
            found = {"data": fingerprints, "findings": warnings}
            text = json.dumps(found, indent=1) + "\n"
            write_text_atomically(directory / CHECKS_FILE, text)
        for warning in warnings or ():
            say(f"warning: {warning}")
    return PreparedData(directory, tokenizer, splits["train"], splits["val"])


def fingerprint(problem: Problem, split: str) -> str:
    """Identifies the data of a split: its text, or what stands for a large one.

    Raises:
        UserError: the split cannot be read.
    """
    if split == "train":
        return problem.fingerprint()
    return hash_of_pairs(problem.pairs(split))


def _fingerprints(problem: Problem, known: Mapping[str, str]) -> dict[str, str]:
    """Identifies the data of every split that is there."""
    found = {
        split: known.get(split) or fingerprint(problem, split)
        for split in ENCODED_SPLITS
    }
    # Data may be prepared without a test split, which is needed only for a score.
    with suppress(UserError):
        found["test"] = known.get("test") or fingerprint(problem, "test")
    return found


@contextmanager
def _folder(directory: Path) -> Iterator[None]:
    """Makes a folder, and removes it in the end if it is empty."""
    directory.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        for empty in (directory, directory.parent):
            with suppress(OSError):
                empty.rmdir()


@dataclass(frozen=True)
class _Preparation:
    """The steps of `prepare`, whose arguments it holds."""

    problem: Problem
    hparams: HParams
    directory: Path
    fingerprints: Mapping[str, str]
    say: Callable[[str], None]

    def known_warnings(self) -> list[str] | None:
        """Returns what was found against the same data before; None: nobody looked."""
        path = self.directory / CHECKS_FILE
        try:
            checks = json.loads(path.read_text(encoding="utf-8"))
            return checks["findings"] if checks["data"] == self.fingerprints else None
        except (OSError, ValueError, LookupError, TypeError):
            return None

    def remove_unusable(self) -> None:
        """Deletes the folder if any part of it is damaged or not of these data."""
        if not any(self.directory.iterdir()):
            return
        try:
            vocabulary = load_tokenizer(self.directory).fingerprint
            for split in ENCODED_SPLITS:
                folder = self.directory / split
                if folder.exists():
                    load_shards(folder, vocabulary, self.fingerprints[split])
        except UserError as error:
            self.say(f"making {self.directory} anew: {error}")
            shutil.rmtree(self.directory)
            self.directory.mkdir()

    def vocabulary(self, vocab_file: Path | None) -> Tokenizer:
        """Loads the folder's vocabulary, built or copied before if there is none."""
        kind = self.hparams.tokenizer
        suffix = vocab_file.suffix if vocab_file else SUFFIXES.get(kind)
        if suffix is None:
            raise UserError(
                f"hparams: tokenizer={kind} is never built from text; give the file "
                "of an imported model (--vocab_file M/vocab.marian)"
            )
        path = self.directory / f"vocab{suffix}"
        if path.exists():
            self.say(f"reusing {path}")
        elif vocab_file is not None:
            write_bytes_atomically(path, vocab_file.read_bytes())
        else:
            self.say(f"building a vocabulary of {self.hparams.vocab_size:,} subwords")
            try:
                self._build_vocabulary(path, self.hparams.vocab_size)
            except VocabularyTooLargeError as error:
                self.say(f"  {error}, which is taken instead")
                self._build_vocabulary(path, error.largest)
        return load_tokenizer(path)

    def _build_vocabulary(self, path: Path, size: int) -> None:
        """Builds a vocabulary that source and target share."""
        lines = (line for pair in self.problem.pairs("train") for line in pair)
        tags = self.problem.target_lang == TREES
        build_vocabulary(self.hparams.tokenizer, lines, size, path, whole_tags=tags)

    def encode(
        self, split: str, pairs: Iterable[tuple[str, str]], tokenizer: Tokenizer
    ) -> None:
        """Encodes a split and says what was left out."""
        problem = self.problem
        self.say(f"encoding {problem.name} {split}")
        origin = Origin(
            problem.name,
            self.fingerprints[split],
            problem.description(split),
            problem.source_lang,
            problem.target_lang,
        )
        told = 0

        def progress(read: int) -> None:
            nonlocal told
            if read - told >= _PROGRESS_PAIRS:
                told = read
                self.say(f"  {read:,} pairs")

        folder = self.directory / split
        found = write_shards(pairs, tokenizer, folder, split, origin, progress=progress)
        self.say(_summary(found))


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


def manifests(directory: Path) -> dict[str, Manifest]:
    """Returns the manifest of every encoded split of a folder."""
    return {split: read_manifest(directory / split) for split in ENCODED_SPLITS}
