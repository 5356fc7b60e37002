"""Writes a local data set that TFDS uses in place of a download.

This is for tests, and for trying the WMT problems offline:

    python tests/tfds_local.py --data_dir D --pairs 4000 --source F --target G
    python -m t2t_repro.train --hparams big --data_dir D --train_steps 2
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterable, Mapping
from itertools import islice
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


def main(argv: list[str] | None = None) -> int:
    """Writes a data set from two text files and prints the path of its folder."""
    parser = argparse.ArgumentParser(description="Writes a local TFDS data set.")
    parser.add_argument("--data_dir", required=True, help="data directory of commands")
    parser.add_argument("--source", required=True, help="English text file")
    parser.add_argument("--target", required=True, help="translation of the text file")
    parser.add_argument(
        "--pairs", type=int, default=4000, help="number of training pairs"
    )
    parser.add_argument(
        "--held_out", type=int, default=100, help="number of pairs of val and of test"
    )
    parser.add_argument("--dataset", default=WMT14_ENDE, help="TFDS name/configuration")
    args = parser.parse_args(argv)
    sizes = {"train": args.pairs, "validation": args.held_out, "test": args.held_out}
    with (
        open(args.source, encoding="utf-8") as sources,
        open(args.target, encoding="utf-8") as targets,
    ):
        lines = zip(sources, targets, strict=False)
        pairs = ((source.rstrip("\n"), target.rstrip("\n")) for source, target in lines)
        splits = {split: list(islice(pairs, size)) for split, size in sizes.items()}
    if any(len(splits[split]) < size for split, size in sizes.items()):
        parser.error(f"{args.source} has fewer than {sum(sizes.values()):,} lines")
    print(write_local_dataset(args.data_dir, splits, args.dataset))
    return 0


if __name__ == "__main__":
    sys.exit(main())
