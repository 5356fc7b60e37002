"""Writes a local data set that TFDS uses in place of a download."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

WMT14_ENDE = "wmt14_translate/de-en"


def write_local_dataset(
    data_dir: str | Path,
    splits: Mapping[str, Iterable[tuple[str, str]]],
    name: str = WMT14_ENDE,
) -> Path:
    """Writes English-to-foreign pairs in the file format of TFDS.

    Args:
        data_dir: Data directory; the data set is written to its subfolder `tfds`.
        splits: (English, foreign) pairs of "train", "validation" and "test".
        name: TFDS name and configuration, such as NAME/FOREIGN-en.

    Returns:
        Folder of the data set, which ends in its version.
    """
    import tensorflow_datasets as tfds

    dataset, config = name.split("/")
    foreign, english = config.split("-")
    # TFDS prints its progress to standard output.
    with contextlib.redirect_stdout(sys.stderr):
        builder = tfds.dataset_builders.store_as_tfds_dataset(
            name=dataset,
            config=config,
            version="1.0.0",
            features=tfds.features.Translation(languages=(foreign, english)),
            split_datasets={
                split: [
                    (key, {english: source, foreign: target})
                    for key, (source, target) in enumerate(pairs)
                ]
                for split, pairs in splits.items()
            },
            data_dir=Path(data_dir) / "tfds",
            disable_shuffling=True,
        )
    return Path(builder.data_dir)
