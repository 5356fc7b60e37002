"""Measures the start of the command `translate`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks import decoding
from benchmarks.report import Result, say
from t2t_repro.system.errors import UserError

IMPORT = "import tensorflow"
PROCESSOR, BEYOND = "processor s", "beyond the import"
LINE = "izcyt vqsoe cyibwrvsjcaiugljxykejqoktssjde zp eoq vpm i\n"


class Usage(NamedTuple):
    """Resources of a process.

    Attributes:
        seconds: Time from its start to its end.
        processor_seconds: Processor time of all its threads, in the kernel as well.
        memory: Peak memory in bytes.
    """

    seconds: float
    processor_seconds: float
    memory: int


def measure_usage(*arguments: str) -> Usage:
    """Runs Python with some arguments and returns the resources that it used.

    Raises UserError if it fails.
    """
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.DEVNULL,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    try:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    finally:
        process.kill()  # After Ctrl-C, it may still be running.
    if process.returncode:
        raise UserError(f"{' '.join(arguments)} failed; see its error above")
    used = usage.ru_utime + usage.ru_stime
    return Usage(time.perf_counter() - began, used, usage.ru_maxrss * 1024)


def write_line(size: str, vocab_size: int, folder: Path) -> list[str]:
    """Writes a model directory with random weights, and a text of one line.

    Random weights do not end a translation. It is limited to the length of the line,
    which has about 20 subwords.

    Args:
        size: Name of a hyper-parameter set.
        vocab_size: Number of subwords.
        folder: New folder for the model and the text.

    Returns:
        The arguments with which Python translates the line.
    """
    folder.mkdir()
    decoding.write_vocabulary(folder, vocab_size, seed=1)
    model_dir = write_model_dir(size, folder / decoding.VOCABULARY, folder)
    text = folder / "line.txt"
    text.write_text(LINE, encoding="utf-8")
    flags = {"model_dir": model_dir, "input_file": text, "extra_length": 0}
    named = [f"--{name}={value}" for name, value in flags.items()]
    return ["-m", "t2t_repro.translate", *named]


def write_model_dir(size: str, vocabulary: Path, folder: Path, **changes: Any) -> Path:
    """Writes a model directory with random weights in a folder; returns its path.

    Args:
        size: Name of a hyper-parameter set.
        vocabulary: File of the vocabulary.
        folder: Parent of the model directory.
        **changes: Hyper-parameters that differ from the set.
    """
    from t2t_repro.hparams import load
    from t2t_repro.models.variables import named_variables
    from t2t_repro.runs import checkpoints, tensor_file
    from t2t_repro.runs.model_dir import ModelDir, build_model
    from t2t_repro.runs.run_metadata import RunMetadata
    from t2t_repro.tokenizers.load import load_tokenizer

    tokenizer = load_tokenizer(vocabulary)
    hparams = load(size).replace(vocab_size=tokenizer.vocab_size, **changes)
    model = build_model(hparams, tokenizer.vocab_size)
    directory = ModelDir(folder / "model")
    fingerprint = tokenizer.fingerprint
    origin = RunMetadata(None, "en", "de", None, None, fingerprint, True)
    directory.begin(hparams, origin, tokenizer)
    weights = tensor_file.copy_to_host(named_variables(model))
    checkpoints.save(directory.checkpoint_dir, 1, weights)
    return directory.path


def time_one_line(
    commands: Mapping[str, Sequence[str]], rounds: int, table: Result
) -> None:
    """Times TensorFlow's import and commands in turn; `table` gets the figures.

    `BEYOND` is the processor time beyond the import's, divided by it.

    Args:
        commands: Arguments of Python by name.
        rounds: Number of turns.
        table: Table that gets a row per command.
    """
    for _ in range(rounds):
        for name, command in {IMPORT: ("-c", IMPORT), **commands}.items():
            usage = measure_usage(*command)
            row = table.setdefault(name, {"s": [], PROCESSOR: []})
            row["s"].append(usage.seconds)
            row[PROCESSOR].append(usage.processor_seconds)
            say(f"  {name}: {usage.processor_seconds:.2f} s of processor time")
            if name != IMPORT:
                own = median(table[IMPORT][PROCESSOR])
                row[BEYOND] = median(row[PROCESSOR]) / own - 1


def only_import(fields: Mapping[str, Any]) -> None:
    """Answers each request without doing anything, for the memory of the import."""
    from benchmarks.peers.turns import turns

    for _ in turns():
        pass
