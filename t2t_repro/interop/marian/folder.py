"""An OPUS-MT download, or another folder of a training with Marian.

Weights are in an npz file with Marian's options in it, as text; `decoder.yml` names it
and the vocabularies (github.com/marian-nmt/marian).
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from t2t_repro.interop.embedding_tables import Tables
from t2t_repro.interop.formats.array_store import ArrayStore
from t2t_repro.interop.formats.npz import read_npz
from t2t_repro.interop.marian.model import MarianModel
from t2t_repro.interop.marian.options import (
    OPTIONS,
    described_model,
    gelu_of_version,
    options_in,
    read_yaml,
    refuse_others,
    without_meaning,
)
from t2t_repro.interop.marian.search import marian_search
from t2t_repro.interop.vocabulary import (
    Vocabularies,
    Vocabulary,
    ordered_vocabulary,
)
from t2t_repro.system.errors import UserError


def read_marian(
    folder: Path, decoder_yml: str | None = None, activation: str | None = None
) -> MarianModel:
    """Reads and checks a folder of Marian's.

    Args:
        folder: with the weights and vocabularies.
        decoder_yml: the file in it that names them, where there are several.
        activation: what the options cannot tell; None: as they say.

    Raises:
        UserError: something is missing, damaged, of another model, or of a kind that
            is not supported here.
    """
    settings_file, settings = _decoder_settings(folder, decoder_yml)
    weights_file = _weights_file(folder, settings_file, settings)
    arrays = read_npz(weights_file)
    options = options_in(weights_file, arrays.pop(OPTIONS, None))
    refuse_others(weights_file, options)
    store = ArrayStore.of_arrays(weights_file, arrays, ("float16", "float32"))
    hparams = described_model(weights_file, options, activation)
    tables = _tables(store, hparams["d_model"], options)
    search, search_left = marian_search(folder, settings)
    unused = {"options of the training": sorted(without_meaning(options))}
    if activation is not None and (told := gelu_of_version(options)) != activation:
        unused["the GELU of its version of Marian"] = [] if told is None else [told]
    return MarianModel(
        program="Marian",
        store=store,
        tables=tables,
        vocabularies=_vocabularies(folder, settings_file, settings, tables),
        hparams=hparams,
        search=search,
        unused=unused | {"settings of the search": search_left},
    )


def _decoder_settings(folder: Path, name: str | None) -> tuple[Path, Mapping[str, Any]]:
    """Finds and reads the file that names the others."""
    if name is None:
        found = sorted(path.name for path in folder.glob("*decoder.yml"))
        if "decoder.yml" in found:
            found = ["decoder.yml"]
        if len(found) != 1:
            several = "; name one with --decoder_yml" if found else ""
            names = ", ".join(found) or "none"
            raise UserError(
                f"--folder {folder}: a Marian model has one decoder.yml, which names "
                "its files (one of Transformers has a config.json); found "
                f"{names}{several}"
            )
        name = found[0]
    path = folder / name
    return path, read_yaml(path)


def _beside(folder: Path, settings_file: Path, name: Any) -> Path:
    """Returns a file that the settings name: its path may be another machine's."""
    if not isinstance(name, str) or not name:
        raise UserError(f"{settings_file}: a file without a name")
    path = folder / re.split(r"[/\\]", name)[-1]
    if not path.is_file():
        raise UserError(f"{path}: no such file, but {settings_file.name} names it")
    return path


def _weights_file(
    folder: Path, settings_file: Path, settings: Mapping[str, Any]
) -> Path:
    models = settings.get("models")
    if not isinstance(models, list) or len(models) != 1:
        raise UserError(
            f"{settings_file}: models must name one file, not {models!r:.80}; of an "
            "ensemble import each model by itself"
        )
    path = _beside(folder, settings_file, models[0])
    if path.suffix != ".npz":
        raise UserError(
            f"{path}: only Marian's .npz is read; convert it (marian-conv goes the "
            "other way) or get the .npz of the training"
        )
    return path


def _tables(store: ArrayStore, d_model: int, options: Mapping[str, str]) -> Tables:
    """Takes the tables and the softmax's bias."""
    shared = store.take_optional("Wemb", None, d_model)

    def own(name: str) -> np.ndarray:
        table = store.take_optional(name, None, d_model)
        if table is None:
            table = shared
        return store.take(name) if table is None else table

    source, target = own("encoder_Wemb"), own("decoder_Wemb")
    softmax = store.take_optional("decoder_ff_logit_out_Wt", None, d_model)
    turned = store.take_optional("decoder_ff_logit_out_W", d_model, None)
    if softmax is None:
        softmax = target if turned is None else turned.T
    rows = len(softmax)
    if len(target) != rows:
        raise UserError(
            f"{store.file}: {len(target):,} rows of the target's table, but {rows:,} "
            "of the softmax"
        )
    name = "decoder_ff_logit_out_b"
    if options.get("output-omit-bias") == "true" and store.key(name) is None:
        bias = np.zeros(rows, np.float32)
    else:
        bias = store.take(name, 1, rows)[0]
    return Tables(source, target, softmax, bias)


def _vocabularies(
    folder: Path,
    settings_file: Path,
    settings: Mapping[str, Any],
    tables: Tables,
) -> Vocabularies:
    """Reads one vocabulary, or two where the settings name two."""
    names = settings.get("vocabs")
    if not isinstance(names, list) or len(names) != 2:
        raise UserError(
            f"{settings_file}: vocabs must name two files, of source and target; "
            f"models of several sources are not supported here: {names!r:.80}"
        )
    files = [_beside(folder, settings_file, name) for name in names]
    rows = len(tables.source), len(tables.target)
    source = _vocabulary(files[0], rows[0])
    if files[0] != files[1]:
        return Vocabularies(source, _vocabulary(files[1], rows[1]))
    if rows[0] != rows[1]:
        raise UserError(
            f"{settings_file} names one vocabulary, but the model has tables of "
            f"{rows[0]:,} and {rows[1]:,} rows"
        )
    return Vocabularies(source, None)


def _vocabulary(path: Path, rows: int) -> Vocabulary:
    if path.suffix not in (".yml", ".yaml"):
        raise UserError(
            f"{path}: only vocabularies in YAML (*.vocab.yml) are supported here, not "
            f"{path.suffix or 'others'}"
        )
    return ordered_vocabulary(path, read_yaml(path), rows)
