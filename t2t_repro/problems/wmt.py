"""WMT corpora of the paper, read with TensorFlow Datasets (TFDS).

TFDS stores the pairs as German-English and French-English; the problems reverse them.
The validation split is newstest2013; the test split is all 3,003 lines of newstest2014
(sacreBLEU's `wmt14/full`; its `wmt14` omits 266 of the English-German lines).
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

# TFDS name of each corpus, and its number of training pairs if known.
_CORPORA: dict[str, tuple[str, int | None]] = {
    # Europarl v7, Common Crawl, News Commentary v9: the paper's "about 4.5 million
    # sentence pairs" (section 5.1).
    "translate_ende_wmt14": ("wmt14_translate/de-en", 4_508_785),
    # The paper used 36 million pairs; TFDS includes all pairs of its sources.
    "translate_enfr_wmt14": ("wmt14_translate/fr-en", None),
    # T2T: data_generators/translate_ende.py; News Commentary is v13 there.
    "translate_ende_wmt_t2t": ("wmt_t2t_translate/de-en", 4_592_289),
}
_TFDS_SPLITS = {"train": "train", "val": "validation", "test": "test"}
# Names and numbers of lines of the held-out sets.
_HELD_OUT = {"val": ("newstest2013", 3000), "test": ("newstest2014", 3003)}
_DOWNLOAD_HOST = "http://data.statmt.org/"
_PROBE_SECONDS = 10
_BATCH = 1024
_HASHED_BYTES = 1 << 20


class WmtProblem(Problem):
    """WMT corpus from a TFDS folder; downloads the corpus if it is missing.

    Attributes:
        tfds_dir: First of these folders that contains the corpus: `tfds` in the data
            directory, the data directory, TFDS's default (`$TFDS_DATA_DIR` or
            `~/tensorflow_datasets`). The first folder if the corpus must be downloaded.
    """

    def __init__(self, name: str, data_dir: str | None) -> None:
        """Looks for a prepared data set, without reading it.

        Args:
            name: Name of the problem.
            data_dir: Folder that may contain TFDS data sets.
        """
        super().__init__(data_dir)
        self.name = name
        self._tfds_name, self._train_pairs = _CORPORA[name]
        self.target_lang, self.source_lang = self._tfds_name[-5:].split("-")
        default = os.environ.get("TFDS_DATA_DIR") or "~/tensorflow_datasets"
        folders = [Path(default).expanduser()]
        if data_dir is not None:
            folders = [Path(data_dir) / "tfds", Path(data_dir), *folders]
        prepared = (_newest(folder / self._tfds_name) for folder in folders)
        self._prepared = next(filter(None, prepared), None)
        self.tfds_dir = self._prepared.parents[2] if self._prepared else folders[0]

    def pairs(self, split: str) -> Iterator[tuple[str, str]]:
        """Yields (source, target) in the order of the TFDS files.

        Raises UserError if the data is damaged, or missing and cannot be downloaded.
        """
        check_split(split)
        import tensorflow as tf
        import tensorflow_datasets as tfds

        # Files are read sequentially, so that the order is the same on every machine.
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
                f"or damaged ({_first_line(error)}); copy or prepare them again"
            ) from error

    def description(self, split: str) -> str:
        """Returns the name and number of lines of a split.

        The description includes a note if the size differs from the real corpus, for
        example in a hand-made data set. Raises like `pairs`.
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

        Raises like `pairs`.
        """
        info = self._builder.info
        digest = hashlib.sha256(f"{info.full_name} {self.source_lang}".encode())
        for name in info.splits["train"].filepaths:
            try:
                with open(name, "rb") as file:
                    digest.update(f" {os.fstat(file.fileno()).st_size} ".encode())
                    digest.update(file.read(_HASHED_BYTES))
            except OSError as error:
                raise UserError(f"cannot read {name}: {error.strerror}") from error
        return f"{info.full_name}:{self.source_lang}:{digest.hexdigest()}"

    @cached_property
    def _builder(self) -> Any:
        """TFDS builder of the prepared data set; downloads it if necessary."""
        import tensorflow_datasets as tfds

        if self._prepared is None:
            return self._download()
        try:
            return tfds.builder_from_directory(self._prepared)
        except Exception as error:
            raise UserError(
                f"{self._prepared} is not a readable TFDS data set "
                f"({_first_line(error)}); copy or prepare it again"
            ) from error

    def _download(self) -> Any:
        """Downloads and prepares the data set with TFDS.

        Raises UserError with instructions if the download fails.
        """
        try:
            _require_network()
            import tensorflow_datasets as tfds

            # TFDS prints its progress to standard output, which is reserved for
            # results.
            with contextlib.redirect_stdout(sys.stderr):
                builder = tfds.builder(self._tfds_name, data_dir=str(self.tfds_dir))
                builder.download_and_prepare()
        except Exception as error:
            name = self._tfds_name
            raise UserError(
                f"{name} is not prepared in {self.tfds_dir} and cannot be downloaded "
                f"({_first_line(error)}); on a machine with internet run: python -c "
                f"'import tensorflow_datasets as tfds; "
                f'tfds.builder("{name}", data_dir="tfds").download_and_prepare()\' and '
                f"copy tfds/{name} to {self.tfds_dir / name}"
            ) from error
        return builder


def _newest(versions_dir: Path) -> Path | None:
    """Returns the folder of the newest prepared version, or None."""
    versions = [
        (tuple(int(part) for part in folder.name.split(".")), folder)
        for folder in versions_dir.glob("*.*.*")
        if re.fullmatch(r"\d+\.\d+\.\d+", folder.name)
        and (folder / "dataset_info.json").exists()
    ]
    return max(versions)[1] if versions else None


def _require_network() -> None:
    """Raises OSError if the corpus' host cannot be reached within `_PROBE_SECONDS`.

    Without this check TFDS retries for over three minutes (measured with 4.9.10).
    Proxies set in the environment are used.
    """
    request = urllib.request.Request(_DOWNLOAD_HOST, method="HEAD")
    # Even an error status shows that the host is reachable.
    with contextlib.suppress(urllib.error.HTTPError):
        urllib.request.urlopen(request, timeout=_PROBE_SECONDS).close()


def _first_line(error: BaseException) -> str:
    """Returns the first line of an error's message, or its type if it has none."""
    lines = str(getattr(error, "reason", error)).strip().splitlines()
    return lines[0] if lines else type(error).__name__
