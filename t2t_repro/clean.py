"""Cleans sentence pairs, and divides them into training, validation and test data.

The output folder receives train.*, val.* and test.* files for the problem "files", and
dropped.tsv with each dropped pair, its rule and its place. The report counts the pairs
that each rule dropped or repaired. The same command continues an interrupted run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_repro.command_line import cli
from t2t_repro.command_line.progress_bar import progress_bar
from t2t_repro.formats.pairs import find_format, read_pairs
from t2t_repro.system.atomic_dir import whole_folder
from t2t_repro.system.atomic_file import iterate_pairs
from t2t_repro.system.cores import usable_cores
from t2t_repro.system.errors import UserError

if TYPE_CHECKING:
    from t2t_repro.cleaning.checked_file import CheckedFile


def _parser() -> cli.ArgumentParser:
    parser = cli.ArgumentParser(__doc__)
    parser.add_argument(
        "--source_lang", required=True, help="language code, such as en"
    )
    parser.add_argument(
        "--target_lang", required=True, help="language code, such as de"
    )
    parser.add_argument(
        "--input",
        type=cli.path,
        nargs="+",
        required=True,
        help="files of pairs (TMX, XLIFF, PO, TSV and others), or a source and a "
        "target file with one sentence per line",
    )
    parser.add_argument(
        "--output_dir", type=cli.path, required=True, help="new or empty folder"
    )
    parser.add_argument(
        "--rules",
        type=cli.path,
        help="YAML file with rules that are switched off, or their thresholds",
    )
    for split in ("val", "test"):
        parser.add_argument(
            f"--{split}_lines",
            type=cli.int_range(0),
            help=f"number of pairs of the {split} split (default: 5 %% of the pairs, "
            "at most 2,000)",
        )
    parser.add_argument(
        "--workers",
        type=cli.int_range(1, 1024),
        default=usable_cores(),
        help="number of processes; the result does not depend on it",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, cleans the pairs and prints the report."""
    args = _parser().parse_args(argv)
    from t2t_repro.cleaning.checked_file import checked_file
    from t2t_repro.cleaning.corpus import Corpus
    from t2t_repro.cleaning.rules import load_rules

    thresholds = load_rules(args.rules)
    languages = args.source_lang, args.target_lang
    folder = Path(args.output_dir)
    _check(languages, folder)
    shown = not args.json
    identity = {
        "input": [(path, *_describe(path)) for path in args.input],
        "languages": languages,
        "rules": thresholds,
    }
    partial = folder.with_name(f"{folder.name}.partial")
    with checked_file(partial, identity) as file, _resumable(file):
        if file.pairs:
            cli.log(f"resuming after pair {file.pairs:,}")
        with progress_bar(None, file.pairs, shown) as progress:
            corpus = Corpus(file, args.workers, progress)
            corpus.check(_read(args.input, languages), thresholds, languages)
            corpus.compare(thresholds)
        with whole_folder(folder) as aside:
            corpus.write(aside, languages, args.val_lines, args.test_lines)
    cli.print_result(corpus.report.format(), corpus.report.to_dict(), args.json)


def _check(languages: tuple[str, str], folder: Path) -> None:
    """Raises UserError for invalid languages or a folder that has files."""
    for side, language in zip(("source", "target"), languages, strict=True):
        if not re.fullmatch("[A-Za-z0-9_-]+", language):
            raise UserError(f"{side}_lang {language!r}: use a language code such as en")
    if languages[0] == languages[1]:
        raise UserError(f"source_lang and target_lang are both {languages[0]}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(
            f"output_dir {folder} is not an empty folder; remove it or choose another"
        )


@contextmanager
def _resumable(file: CheckedFile) -> Iterator[None]:
    """On Ctrl-C, prints how to resume."""
    try:
        yield
    except KeyboardInterrupt:
        cli.log(f"{file.pairs:,} pairs are checked; run the same command to resume")
        raise


def _describe(path: str) -> tuple[int, int]:
    """Returns a file's size and modification time (ns), or -1 if it is missing."""
    try:
        status = Path(path).stat()
    except OSError:
        return -1, -1
    return status.st_size, status.st_mtime_ns


def _read(
    paths: Sequence[str], languages: tuple[str, str]
) -> Iterator[tuple[str, str, str]]:
    """Yields the place, the source and the target of each pair."""
    if len(paths) == 2 and not any(map(find_format, paths)):
        for number, (source, target) in enumerate(iterate_pairs(*paths), 1):
            yield f"line {number}", source, target
        return
    for path in paths:
        file = f"{path}: " if len(paths) > 1 else ""
        for source, target, place in read_pairs(path, *languages, report=cli.log):
            yield f"{file}{place}", source, target


if __name__ == "__main__":
    cli.run(main)
