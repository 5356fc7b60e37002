"""Measures the time from the start of the training command to its first step."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.report import say
from t2t_repro.system.errors import UserError

PROBLEM = "translate_ende_numbers"
VOCAB_SIZE = 800
"""Subwords of the built-in corpus, which is too small for a larger vocabulary."""


class StartUp:
    """Starts `python -m t2t_repro.train` on the built-in corpus, prepared in advance.

    Args:
        folder: Folder for the data and models.
        tokens: Maximum number of positions per side of a batch.
        longest: Maximum sentence length in subwords.
    """

    def __init__(self, folder: Path, tokens: int, longest: int) -> None:
        self._folder = folder
        self._overrides = (
            f"vocab_size={VOCAB_SIZE},tokens_per_batch={tokens},max_length={longest}"
        )
        self._models = 0
        say("preparing the built-in corpus ...")
        with self._command("datagen", "tiny") as process:
            process.communicate()
        if process.returncode:
            raise UserError("datagen could not prepare the corpus; see its error above")

    def first_step(self, size: str) -> float:
        """Returns the seconds from the start of the process to its first step.

        The process is killed after the first step. Raises UserError if it ends without
        a step.
        """
        self._models += 1
        model_dir = str(self._folder / f"model_{self._models}")
        flags = ("--model_dir", model_dir, "--train_steps", "1")
        began = time.perf_counter()
        with self._command("train", size, *flags) as process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    if line.startswith("step 1/1 "):
                        return time.perf_counter() - began
            finally:
                process.kill()
        raise UserError(
            f"training {size} ended before its first step; see its error above"
        )

    def _command(self, name: str, size: str, *flags: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", f"t2t_repro.{name}", "--problem", PROBLEM]
        command += ["--hparams", f"{size},{self._overrides}"]
        command += ["--data_dir", str(self._folder / "data"), *flags]
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"},
        )
