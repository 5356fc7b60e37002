"""Times the reading of TMX beside Python's XML parser, and `clean`.

    python tools/benchmarks/benchmark_files.py [--units 1000000] [--work_dir D]

Generates text with the mean lengths of WMT14 English-German (see `benchmark_input`) and
writes it as TMX. `iterparse` is `xml.etree.ElementTree.iterparse`, which only finds the
units and removes them. Both readers take turns. `clean` runs without the rule
`misaligned`, with one process per core.
"""

import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.etree import ElementTree

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import report
from benchmarks.benchmark_input import write_corpus
from benchmarks.report import Result, say
from t2t_repro.command_line import cli
from t2t_repro.formats.pairs import read_pairs
from t2t_repro.system.errors import UserError

_ROUNDS = 5
_START = '<?xml version="1.0" encoding="utf-8"?><tmx version="1.4"><header/><body>\n'
_STDERR = 2  # File descriptor.


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, times both programs and prints the figures."""
    args = report.parser(
        __doc__,
        ("units", cli.int_range(1000), 200_000, "number of units"),
        ("work_dir", cli.path, None, "directory for temporary files"),
    ).parse_args(argv)
    with (
        tempfile.TemporaryDirectory(dir=args.work_dir) as name,
        report.report_at_end(args) as result,
    ):
        measure(args, Path(name), result["tables"])


def measure(args: Namespace, folder: Path, tables: Result) -> None:
    """Generates a corpus, reads it and cleans it; `tables` gets a row per program."""
    say(f"generating {args.units:,} units")
    write_corpus(folder, args.units)
    tmx = folder / "corpus.tmx"
    write_tmx(folder, tmx)
    readers: dict[str, Callable[[Path], int]] = {
        "iterparse": count_with_iterparse,
        "t2t_repro": lambda path: sum(1 for _ in read_pairs(path, "en", "de")),
    }
    rows = tables.setdefault("TMX", {})
    for number in range(_ROUNDS):
        say(f"reading, round {number + 1} of {_ROUNDS}")
        for reader, count in readers.items():
            began = time.perf_counter()
            if count(tmx) != args.units:
                raise UserError(f"{reader} did not find {args.units:,} units")
            seconds = time.perf_counter() - began
            row = rows.setdefault(reader, {"us per unit": []})
            row["us per unit"].append(seconds / args.units * 1e6)
    say("cleaning")
    rules = folder / "rules.yaml"
    rules.write_text("misaligned: false\n")
    command = [sys.executable, "-m", "t2t_repro.clean", "--source_lang", "en"]
    command += ["--target_lang", "de", "--rules", str(rules)]
    command += ["--input", *(str(folder / f"train.{code}") for code in ("en", "de"))]
    command += ["--output_dir", str(folder / "clean")]
    began = time.perf_counter()
    if subprocess.run(command, stdout=_STDERR).returncode:
        raise UserError("clean failed; see its error above")
    seconds = time.perf_counter() - began
    tables["clean"] = {"t2t_repro": {"s": seconds, "pairs/s": args.units / seconds}}


def write_tmx(folder: Path, path: Path) -> None:
    """Writes the files `train.en` and `train.de` of a folder as TMX."""
    with (
        open(folder / "train.en", encoding="utf-8") as english,
        open(folder / "train.de", encoding="utf-8") as german,
        open(path, "w", encoding="utf-8") as file,
    ):
        file.write(_START)
        for number, pair in enumerate(zip(english, german, strict=True)):
            variants = "".join(
                f'<tuv xml:lang="{code}">\n<seg>{text.rstrip()}</seg>\n</tuv>\n'
                for code, text in zip(("en", "de"), pair, strict=True)
            )
            file.write(f'<tu tuid="{number}">\n{variants}</tu>\n')
        file.write("</body></tmx>\n")


def count_with_iterparse(path: Path) -> int:
    """Returns the number of units of a TMX file."""
    units = 0
    for _, element in ElementTree.iterparse(path):
        if element.tag == "tu":
            units += 1
            element.clear()
    return units


if __name__ == "__main__":
    cli.run(main)
