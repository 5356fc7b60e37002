"""A Marian model for `benchmark_translate.py`, and its task for t2t_repro.

`settings` are the flags of that command, with its folder `work_dir`.
"""

from __future__ import annotations

import json
import shutil
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import decoding
from benchmarks.start_up import LINE

FOLDER, MODEL = "marian", "imported"
_SPECIAL = ("</s>", "<unk>")


def write_texts(settings: Namespace) -> dict[str, Any]:
    """Writes SentencePiece models and a vocabulary.

    The vocabulary has the pieces of the SentencePiece models and unused pieces.

    Returns:
        The argument WORK of the script `peers/opus_mt.py`.
    """
    from t2t_repro.tokenizers.marian_tokenizer import model_pieces

    work_dir = Path(settings.work_dir)
    folder = work_dir / FOLDER
    folder.mkdir()
    decoding.write_vocabulary(work_dir, min(1000, settings.vocab_size), settings.seed)
    path = work_dir / decoding.VOCABULARY
    for side in ("source", "target"):
        shutil.copyfile(path, folder / f"{side}.spm")
    pieces = [*_SPECIAL, *model_pieces(path.read_bytes(), str(path))]
    others = (f"piece{n}" for n in range(len(pieces), settings.vocab_size - 1))
    vocabulary = {p: n for n, p in enumerate([*pieces, *others, "<pad>"])}
    text = json.dumps(vocabulary, ensure_ascii=False)
    (folder / "vocab.json").write_text(text, encoding="utf-8")
    names = ("vocab_size", "d_model", "num_layers", "beam_size", "steps", "seed")
    return {name: getattr(settings, name) for name in names} | {"folder": str(folder)}


def import_marian(settings: Namespace) -> None:
    """Imports Transformers' model with Transformers' positional encoding."""
    from t2t_repro.interop.import_model import import_model
    from t2t_repro.interop.marian.importer import read

    work_dir = Path(settings.work_dir)
    import_model(lambda: read(work_dir / FOLDER, "transformers"), work_dir / MODEL)


def t2t_repro(fields: Mapping[str, Any]) -> None:
    """Translates as `python -m t2t_repro.translate` does with the imported model."""
    settings = Namespace(**fields)
    from t2t_repro.fast.parallel_batches import give_each_batch_a_core
    from t2t_repro.fast.searchers import fastest_searcher
    from t2t_repro.translation.loading import load_models

    give_each_batch_a_core(settings.xla)
    directory = Path(settings.work_dir) / MODEL
    loaded = load_models(directory, precision=settings.precision)
    searcher = fastest_searcher(
        loaded.models,
        loaded.tokenizer,
        loaded.search(),
        0.0 if settings.xla else None,
    )
    decoding.search_batches_in_turn(settings, searcher)


def calibrate(fields: Mapping[str, Any]) -> None:
    """Saves the activation ranges that `t2t_repro` needs in int8."""
    from benchmarks.peers.turns import turns
    from t2t_repro.translation.loading import load_models

    work_dir = Path(fields["work_dir"])
    text = work_dir / "calibration.txt"
    text.write_text(LINE, encoding="utf-8")
    load_models(work_dir / MODEL, precision="int8", calibration_file=str(text))
    for _ in turns():
        pass
