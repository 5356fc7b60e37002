"""CTranslate2's contribution to the search benchmarks; see `decoding`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.decoding import BEGIN, VOCABULARY, Ids, make_workloads


def translate(fields: Mapping[str, Any]) -> None:
    """Translates in CTranslate2 and reports the faster of two thread settings.

    At the second request, it logs the instruction sets of CTranslate2's libraries.
    """
    settings = Namespace(**fields)
    import ctranslate2 as peer

    from benchmarks.peers.turns import turns
    from t2t_repro.tokenizers.load import load_tokenizer

    work_dir = Path(settings.work_dir)
    names = np.array(load_tokenizer(work_dir / VOCABULARY).pieces)
    cores = len(os.sched_getaffinity(0))

    def run(batches: Ids, translator: Any) -> None:
        translator.translate_batch(
            # CTranslate2 appends EOS.
            [names[ids[:-1]].tolist() for ids in batches.reshape(-1, settings.length)],
            beam_size=settings.beam_size,
            length_penalty=settings.alpha,
            min_decoding_length=settings.steps,
            max_decoding_length=settings.steps,
            max_batch_size=settings.batch_size,
        )

    translators = [
        peer.Translator(
            str(work_dir / "ctranslate2"),
            compute_type=settings.compute_type,
            inter_threads=inter,
            intra_threads=cores // inter,
        )
        for inter in {1, cores}
    ]
    works = make_workloads(settings)
    for work, answer in turns():
        if work == BEGIN[1]:
            _log_instructions(work_dir / "ctranslate2")
        seconds = []
        for translator in translators:
            began = time.perf_counter()
            for batches in works[work]:
                run(batches, translator)
            seconds.append(time.perf_counter() - began)
        answer["seconds"] = min(seconds)


def _log_instructions(model: Path) -> None:
    """Translates in another process, in which CTranslate2's libraries log everything.

    Logging every matmul would make the measured process slower.
    """
    program = (
        "import ctranslate2, sys\n"
        "translator = ctranslate2.Translator(sys.argv[1])\n"
        "translator.translate_batch([['a']], max_decoding_length=1)"
    )
    variables = dict.fromkeys(("CT2_VERBOSE", "ONEDNN_VERBOSE", "MKL_VERBOSE"), "1")
    subprocess.run(
        [sys.executable, "-c", program, str(model)],
        env={**os.environ, **variables},
        check=True,
    )
