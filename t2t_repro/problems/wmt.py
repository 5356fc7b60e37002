"""The paper's corpora, through TensorFlow Datasets (TFDS).

TFDS knows the pairs as German-English and French-English; here they are reversed.
Validation is newstest2013 and test is all 3,003 lines of newstest2014 (sacreBLEU's
`wmt14/full`; its `wmt14` leaves 266 of the English-German lines out).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from t2t_repro.problems.problem import Problem, check_split
from t2t_repro.system.errors import UserError

# TFDS's name of each corpus, and its training pairs if their number is known.
_CORPORA: dict[str, tuple[str, int | None]] = {
    # Europarl v7, Common Crawl, News Commentary v9: the paper's "about 4.5 million
    # sentence pairs" (section 5.1).
    "translate_ende_wmt14": ("wmt14_translate/de-en", 4_508_785),
    # The paper says 36 million pairs; TFDS takes the whole of its sources.
    "translate_enfr_wmt14": ("wmt14_translate/fr-en", None),
    # T2T: data_generators/translate_ende.py; News Commentary is v13 there.
    "translate_ende_wmt_t2t": ("wmt_t2t_translate/de-en", 4_592_289),
}
_TFDS_SPLITS = {"train": "train", "val": "validation", "test": "test"}
# Name and number of lines of the held-out sets.
_HELD_OUT = {"val": ("newstest2013", 3000), "test": ("newstest2014", 3003)}
_DOWNLOAD_HOST = "http://data.statmt.org/"
_PROBE_SECONDS = 10
_BATCH = 1024
_HASHED_BYTES = 1 << 20


class WmtProblem(Problem):
    """A WMT corpus from a TFDS folder, prepared beforehand or downloaded.

    Attributes:
        tfds_dir: the folder that TFDS keeps its data sets in, the first that holds
            the corpus: `tfds` in the data directory, the data directory, or TFDS's
            own (`$TFDS_DATA_DIR`, `~/tensorflow_datasets`). A download goes to the
            first.
    """

    def __init__(self, name: str, data_dir: str | None) -> None:
        """Chooses the corpus of a name; reads nothing."""
        super().__init__(data_dir)
        self.name = name
        self._tfds_name, self._train_pairs = _CORPORA[name]
        self.target_lang, self.source_lang = self._tfds_name[-5:].split("-")
        default = os.environ.get("TFDS_DATA_DIR") or "~/tensorflow_datasets"
        folders = [Path(default).expanduser()]
        if data_dir is not None:
            folders = [Path(data_dir) / "tfds", Path(data_dir), *folders]
        found = (_newest(folder / self._tfds_name) for folder in folders)
        self._prepared = next(filter(None, found), None)
        self.tfds_dir = self._prepared.parents[2] if self._prepared else folders[0]

    def pairs(self, split: str) -> Iterator[tuple[str, str]]:
        """Yields (source, target) in the order in which TFDS stored them.

        Data that is damaged, or missing and cannot be downloaded, is a UserError.
        """
        check_split(split)
        import tensorflow as tf
        import tensorflow_datasets as tfds

        # One file after the other: the order never depends on the machine.
        config = tfds.ReadConfig(interleave_cycle_length=1, try_autocache=False)
        try:
            dataset = self._builder.as_dataset(
                split=_TFDS_SPLITS[split], shuffle_files=False, read_config=config
            )
            for batch in tfds.as_numpy(dataset.batch(_BATCH)):
                sides = batch[self.source_lang], batch[self.target_lang]
                for source, target in zip(*sides, strict=True):
                    yield source.decode("utf-8"), target.decode("utf-8")
        except (tf.errors.OpError, OSError) as error:
            raise UserError(
                f"the files of {self._tfds_name} in {self.tfds_dir} are missing "
                f"or damaged ({_first_line(error)}); copy or prepare them again."
            ) from error

    def description(self, split: str) -> str:
        """Names the data of a split and its number of lines; raises as `pairs`.

        A prepared folder is taken as it is, but a size that is not the real corpus' is
        told.
        """
        check_split(split)
        tfds_split = _TFDS_SPLITS[split]
        lines = self._builder.info.splits[tfds_split].num_examples
        origin = f"TFDS {self._tfds_name} {tfds_split}"
        training = ("the whole training set", self._train_pairs)
        name, expected = training if split == "train" else _HELD_OUT[split]
        if expected is not None and lines != expected:
            return f"{origin}, {lines:,} lines: not {name}, which has {expected:,}"
        extent = ", WMT14 full" if split == "test" else ""
        return f"{name}, {lines:,} lines{extent} ({origin})"

    def fingerprint(self) -> str:
        """Returns a hash of the size and the first MiB of each training file.

        Raises as `pairs`.
        """
        info = self._builder.info
        digest = hashlib.sha256(f"{info.full_name} {self.source_lang}".encode())
        for name in info.splits["train"].filepaths:
            try:
                with open(name, "rb") as file:
                    digest.update(f" {os.fstat(file.fileno()).st_size} ".encode())
                    digest.update(file.read(_HASHED_BYTES))
            except OSError as error:
                raise UserError(f"cannot read {name}: {error.strerror}.") from error
        return f"{info.full_name}:{self.source_lang}:{digest.hexdigest()}"

    @cached_property
    def _builder(self) -> Any:
        """The TFDS builder of the prepared data set, downloaded if need be."""
        import tensorflow_datasets as tfds

        if self._prepared is None:
            return self._download()
        try:
            return tfds.builder_from_directory(self._prepared)
        except Exception as error:
            raise UserError(
                f"{self._prepared} is no readable TFDS data set "
                f"({_first_line(error)}); copy or prepare it again."
            ) from error

    def _download(self) -> Any:
        """Downloads and prepares the data set with TFDS, or says how to get it."""
        try:
            _require_network()
            import tensorflow_datasets as tfds

            # Standard output belongs to results; TFDS prints its progress there.
            with contextlib.redirect_stdout(sys.stderr):
                builder = tfds.builder(self._tfds_name, data_dir=str(self.tfds_dir))
                builder.download_and_prepare()
        except Exception as error:
            name = self._tfds_name
            raise UserError(
                f"{name} is not prepared in {self.tfds_dir} and cannot be downloaded "
                f"({_first_line(error)}). On a machine with internet run: python -c "
                f"'import tensorflow_datasets as tfds; "
                f'tfds.builder("{name}", data_dir="tfds").download_and_prepare()\' and '
                f"copy tfds/{name} to {self.tfds_dir / name}."
            ) from error
        return builder


def _newest(versions_dir: Path) -> Path | None:
    """Returns the folder of the newest prepared version, or None if there is none.

    A copied data set needs neither the network nor the code that generated it.
    """
    versions = [
        (tuple(int(part) for part in folder.name.split(".")), folder)
        for folder in versions_dir.glob("*.*.*")
        if re.fullmatch(r"\d+\.\d+\.\d+", folder.name)
        and (folder / "dataset_info.json").exists()
    ]
    return max(versions)[1] if versions else None


def _require_network() -> None:
    """Raises OSError at once if the corpus' host cannot be reached.

    TFDS itself retries for over three minutes before it gives up (measured with
    4.9.10 and no network). Proxies set in the environment are used.
    """
    request = urllib.request.Request(_DOWNLOAD_HOST, method="HEAD")
    # An answer with an error status is an answer: the host is there.
    with contextlib.suppress(urllib.error.HTTPError):
        urllib.request.urlopen(request, timeout=_PROBE_SECONDS).close()


def _first_line(error: BaseException) -> str:
    """Returns the first line of an error's text, or its kind if it has none."""
    lines = str(getattr(error, "reason", error)).strip().splitlines()
    return lines[0] if lines else type(error).__name__
