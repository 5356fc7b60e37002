"""Times the input pipeline, from text to batches, with a corpus of WMT's size.

    python tools/benchmarks/benchmark_input.py [--pairs 4500000] [--work_dir D]

Generates text with the number of pairs and the mean lengths of WMT14 English-German
(116 and 110 million words in 4.5 million pairs: Luong et al. 2015, arXiv:1508.04025,
section 4), prepares it with `python -m t2t_repro.datagen`, encodes it again with the
same vocabulary, encodes it with SentencePiece's library alone, and reads training
batches of about 25,000 positions per side. The peak memory is that of one process.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import report
from benchmarks.report import Result, say
from t2t_repro import hparams
from t2t_repro.command_line import cli
from t2t_repro.system.cores import usable_cores
from t2t_repro.system.errors import UserError

WMT_PAIRS = 4_500_000
WMT_WORDS = {"en": 116e6, "de": 110e6}
HPARAMS = "base,vocab_size=16000"
# Sentence lengths are roughly log-normal; the sides of a pair differ by about 20 %.
_SPREAD, _SPREAD_BETWEEN = 0.6, 0.2
_WORD_TYPES, _ZIPF = 100_000, 1.05
_LINES_AT_ONCE = 50_000
_SYLLABLES = [c + v for c in "bdfgklmnprstvz" for v in ("a", "e", "i", "o", "u", "en")]


def main(argv: Sequence[str] | None = None) -> None:
    """Parses the flags, times all stages and prints the figures."""
    args = report.parser(
        __doc__,
        ("pairs", cli.int_range(1000), WMT_PAIRS, "number of sentence pairs"),
        ("batches", cli.int_range(1), 2000, "number of batches to read"),
        ("hparams", cli.path, HPARAMS, "hyper-parameter set with overrides"),
        ("work_dir", cli.path, None, "directory for temporary files"),
    ).parse_args(argv)
    cli.start_tensorflow(args.verbose)
    with (
        tempfile.TemporaryDirectory(dir=args.work_dir) as name,
        report.report_at_end(args) as result,
    ):
        measure(args, Path(name), result["tables"])


def measure(args: Namespace, folder: Path, tables: Result) -> None:
    """Generates, prepares and reads a corpus; `tables` gets one row per stage."""
    say(f"generating {args.pairs:,} pairs")
    write_corpus(folder, args.pairs)
    table = tables["input"] = {}
    say("preparing the data")
    prepared = Path(_run_datagen(args, folder, "vocabulary and shards", table))
    vocabulary = prepared / "vocab.model"
    given = ("--vocab_file", str(vocabulary))
    _run_datagen(args, folder, f"shards, {usable_cores()} processes", table, *given)
    say("encoding with SentencePiece")
    began = time.perf_counter()
    encode_alone(vocabulary, folder, usable_cores())
    seconds = time.perf_counter() - began
    name = f"SentencePiece's library, {usable_cores()} threads"
    table[name] = {"s": seconds, "pairs/s": args.pairs / seconds}
    read(args, folder, table.setdefault("batches", {}))


def _run_datagen(
    args: Namespace, folder: Path, name: str, table: Result, *flags: str
) -> str:
    """Times `datagen`; `table` gets a row. Returns the folder of the shards."""
    command = [
        sys.executable,
        "-m",
        "t2t_repro.datagen",
        "--problem",
        "files",
        "--json",
    ]
    command += ["--hparams", args.hparams, "--data_dir", str(folder), *flags]
    began = time.perf_counter()
    process = subprocess.run(command, stdout=subprocess.PIPE)
    if process.returncode:
        raise UserError("datagen could not prepare the text; see its error above")
    seconds = time.perf_counter() - began
    size = sum(path.stat().st_size for path in folder.glob("train.*"))
    table[name] = {
        "MB of text": size / 1e6,
        "s": seconds,
        "pairs/s": args.pairs / seconds,
        report.MEMORY: _peak_memory(resource.RUSAGE_CHILDREN),
    }
    return str(json.loads(process.stdout)["directory"])


def encode_alone(vocabulary: Path, folder: Path, threads: int) -> None:
    """Encodes both sides of the training text with SentencePiece's batches."""
    import sentencepiece

    model = sentencepiece.SentencePieceProcessor(model_file=str(vocabulary))
    for lang in WMT_WORDS:
        with open(folder / f"train.{lang}", encoding="utf-8") as file:
            while lines := [line[:-1] for line in islice(file, _LINES_AT_ONCE)]:
                model.encode(lines, num_threads=threads)


def _peak_memory(who: int) -> float:
    """Returns the peak memory in MiB."""
    return resource.getrusage(who).ru_maxrss / 1024


def read(args: Namespace, folder: Path, row: Result) -> None:
    """Reads batches of the prepared text as fast as possible; `row` gets the speed."""
    from t2t_repro import problems
    from t2t_repro.batches import pipeline
    from t2t_repro.batches.packed_batch import rectangle
    from t2t_repro.data.prepared_data import prepare
    from t2t_repro.training.procedure import make_batching_config

    values = hparams.load(args.hparams)
    problem = problems.create("files", str(folder), "en", "de")
    pairs = prepare(problem, values, folder, say).train
    say(f"reading {args.batches:,} batches")
    began = time.perf_counter()
    batches = iter(pipeline.batches(pairs, make_batching_config(values), values.seed))
    next(batches)
    row["first batch (s)"] = time.perf_counter() - began
    counts = np.zeros(3, int)
    began = time.perf_counter()
    for batch in islice(batches, args.batches):
        for number in range(len(batch["inputs"])):
            sides = rectangle(batch, number)
            source, target = map(np.count_nonzero, sides)
            counts += target, source + target, sum(map(np.size, sides))
        tokens, both, positions = counts.tolist()
        row["s"] = time.perf_counter() - began
        row["target tokens"] = tokens
        row[report.SPEED] = tokens / row["s"]
        row["padding efficiency (%)"] = 100 * both / positions
    row[report.MEMORY] = _peak_memory(resource.RUSAGE_SELF)


def write_corpus(folder: Path, pairs: int) -> None:
    """Writes `train`, `val` and `test` of both languages, generated with a fixed seed.

    `val` and `test` have 100 pairs each.
    """
    generator = np.random.default_rng(1)
    languages = {lang: made_up_words(generator) for lang in WMT_WORDS}
    for split, count in (("train", pairs), ("val", 100), ("test", 100)):
        for start in range(0, count, _LINES_AT_ONCE):
            lengths = draw_lengths(generator, min(_LINES_AT_ONCE, count - start))
            for (lang, words), side in zip(languages.items(), lengths.T, strict=True):
                with open(folder / f"{split}.{lang}", "a", encoding="utf-8") as file:
                    file.writelines(draw_lines(generator, words, side))


def made_up_words(generator: np.random.Generator) -> npt.NDArray[np.str_]:
    """Returns random words, in order of increasing length and decreasing frequency."""
    counts = np.sort(1 + generator.poisson(1.6, _WORD_TYPES)).tolist()
    syllables = generator.choice(_SYLLABLES, (_WORD_TYPES, counts[-1])).tolist()
    rows = zip(syllables, counts, strict=True)
    return np.array(["".join(row[:count]) for row, count in rows])


def draw_lengths(generator: np.random.Generator, pairs: int) -> npt.NDArray[np.int64]:
    """Draws lengths of both sides in words, int64 (pairs, 2), with WMT14's means."""
    means = np.array([words / WMT_PAIRS for words in WMT_WORDS.values()])
    common = generator.normal(0, _SPREAD, (pairs, 1))
    own = generator.normal(0, _SPREAD_BETWEEN, (pairs, 2))
    # The mean of exp(normal(0, s)) is exp(s^2 / 2).
    scale = means / np.exp((_SPREAD**2 + _SPREAD_BETWEEN**2) / 2)
    return np.maximum(np.rint(scale * np.exp(common + own)), 1).astype(np.int64)


def draw_lines(
    generator: np.random.Generator,
    words: npt.NDArray[np.str_],
    lengths: npt.NDArray[np.int64],
) -> Iterator[str]:
    """Yields lines with the given numbers of words, drawn from Zipf's law."""
    ranks = generator.zipf(_ZIPF, int(lengths.sum())) % len(words)
    for row in np.split(words[ranks], np.cumsum(lengths)[:-1]):
        yield f"{' '.join(row)}\n"


if __name__ == "__main__":
    cli.run(main)
