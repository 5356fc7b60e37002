"""Measures `translate` and CTranslate2 from their start to the end of a file."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks import start_up
from benchmarks.benchmark_input import draw_lengths, draw_lines, made_up_words
from benchmarks.report import Result, say

FLOAT32, INT8 = "float32", "int8"
OURS, PEER = "t2t_repro", "CTranslate2"
_SCRIPT = Path(__file__).parent / "peers" / "ctranslate2_file.py"
_VOCABULARY_LINES, _CALIBRATION_LINES = 20_000, 64


def time_file(
    args: Namespace, size: str, lines: int, folder: Path, table: Result
) -> None:
    """Translates a text of mixed lengths in both programs, in turn.

    Each translation has `args.length` subwords. CTranslate2 tokenizes with
    SentencePiece's library, as its documentation advises.

    Args:
        args: Flags of the benchmark.
        size: Name of a hyper-parameter set, whose random model translates.
        lines: Number of lines.
        folder: New folder for the model and the text.
        table: Table that gets a row for the import and for each program and precision.
            `times as fast` compares the time with CTranslate2's, and `of import and
            CTranslate2` with the sum of CTranslate2's and that of TensorFlow's import.
    """
    from t2t_repro.tokenizers.vocabulary import build_vocabulary

    folder.mkdir()
    text, vocabulary = folder / "text", folder / "vocab.model"
    write_text(text, lines, args.seed)
    write_text(folder / "training", _VOCABULARY_LINES, args.seed)
    with open(folder / "training", encoding="utf-8") as file:
        words = map(str.rstrip, file)
        build_vocabulary("sentencepiece", words, args.vocab_size, vocabulary)
    forced = {"decode_length_factor": 0, "decode_extra_length": args.length}
    model_dir = start_up.write_model_dir(size, vocabulary, folder, **forced)
    model = _prepare(model_dir, folder)
    commands: dict[str, Sequence[str]]
    commands = {start_up.IMPORT: ("-c", start_up.IMPORT)}
    for precision in (FLOAT32, INT8):
        output = folder / f"output.{precision}"
        ours = ["-m", "t2t_repro.translate", "--model_dir", str(model_dir)]
        ours += ["--min_length", str(args.length), "--precision", precision]
        ours += ["--input_file", str(text), "--output_file", str(output)]
        commands[f"{OURS} {precision}"] = (*ours, "--beam_size", str(args.beam_size))
        theirs = [str(_SCRIPT), str(model), str(vocabulary), str(text)]
        theirs += [f"{output}.{PEER}", precision, str(args.beam_size)]
        commands[f"{PEER} {precision}"] = (*theirs, str(args.length))
    for _ in range(args.rounds):
        for name, command in commands.items():
            for path in folder.glob("output.*"):
                path.unlink()
            seconds = start_up.measure_usage(*command).seconds
            table.setdefault(name, {"s": []})["s"].append(seconds)
            say(f"  {name}, {lines:,} lines: {seconds:.1f} s")
    _compare(lines, table)


def _prepare(model_dir: Path, folder: Path) -> Path:
    """Calibrates int8 and writes the model for CTranslate2; returns its folder."""
    from t2t_repro import fast
    from t2t_repro.interop.ctranslate2 import write_ctranslate2
    from t2t_repro.translation.loading import load_models

    calibration = folder / "calibration"
    write_text(calibration, _CALIBRATION_LINES, seed=0)
    fast.install("CPU")
    load_models(model_dir, precision=INT8, calibration_file=str(calibration))
    loaded, exported = load_models(model_dir), folder / "ctranslate2"
    exported.mkdir()
    write_ctranslate2(loaded.models[0], loaded.tokenizer, exported)
    return exported


def _compare(lines: int, table: Result) -> None:
    """Adds the speed and the ratios of the medians to the rows of a table."""
    seconds = {name: median(row["s"]) for name, row in table.items()}
    for precision in (FLOAT32, INT8):
        ours, peer = (f"{name} {precision}" for name in (OURS, PEER))
        for name in (ours, peer):
            table[name]["lines/s"] = lines / seconds[name]
        both = seconds[start_up.IMPORT] + seconds[peer]
        table[ours]["times as fast"] = seconds[peer] / seconds[ours]
        table[ours]["of import and CTranslate2"] = seconds[ours] / both


def write_text(path: Path, lines: int, seed: int) -> None:
    """Writes made-up sentences with the mean length of WMT14's English side."""
    words = made_up_words(np.random.default_rng(1))
    generator = np.random.default_rng(seed)
    lengths = draw_lengths(generator, lines)[:, 0]
    with path.open("w", encoding="utf-8") as file:
        file.writelines(draw_lines(generator, words, lengths))
