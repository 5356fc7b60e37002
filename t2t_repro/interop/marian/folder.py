"""Reader of Marian's model folders, such as OPUS-MT downloads.

`decoder.yml` names the weight file and the vocabularies. The weight file is in npz
format and includes Marian's options as text (github.com/marian-nmt/marian).
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
    parse_options,
    read_yaml,
    reject_unsupported,
    select_gelu,
    translate_options,
    unused_options,
)
from t2t_repro.interop.marian.search import marian_search
from t2t_repro.interop.vocabulary import (
    Vocabularies,
    Vocabulary,
    order_vocabulary,
    piece_vocabulary,
)
from t2t_repro.system.errors import UserError


def read_marian(
    folder: Path, decoder_yml: str | None = None, activation: str | None = None
) -> MarianModel:
    """Reads and checks a model folder of Marian.

    Args:
        folder: Folder of the weights and vocabularies.
        decoder_yml: Name of the settings file in a folder that has several; None
            selects `decoder.yml` or the only settings file.
        activation: Variant of GELU, one of `GELUS`; None derives it from the options.

    Returns:
        The model, whose layer weights are not read yet.

    Raises:
        UserError: A file is missing or damaged, the files belong to different models,
            or the model is not supported.
    """
    settings_file, settings = _decoder_settings(folder, decoder_yml)
    weights_file = _weights_file(folder, settings_file, settings)
    arrays = read_npz(weights_file)
    options = parse_options(weights_file, arrays.pop(OPTIONS, None))
    reject_unsupported(weights_file, options)
    store = ArrayStore.from_arrays(weights_file, arrays, ("float16", "float32"))
    hparams = translate_options(weights_file, options, activation)
    tables = _tables(store, hparams["d_model"], options)
    search, unused_search = marian_search(folder, settings)
    unused = {"options of the training": sorted(unused_options(options))}
    if activation is not None and (gelu := select_gelu(options)) != activation:
        unused["the GELU of its version of Marian"] = [] if gelu is None else [gelu]
    return MarianModel(
        program="Marian",
        store=store,
        tables=tables,
        vocabularies=_vocabularies(folder, settings_file, settings),
        hparams=hparams,
        search=search,
        unused=unused | {"settings of the search": unused_search},
    )


def _decoder_settings(folder: Path, name: str | None) -> tuple[Path, Mapping[str, Any]]:
    """Returns the path and contents of the decoder's settings file."""
    if name is None:
        candidates = sorted(path.name for path in folder.glob("*decoder.yml"))
        if "decoder.yml" in candidates:
            candidates = ["decoder.yml"]
        if len(candidates) != 1:
            remedy = "; select one with --decoder_yml" if candidates else ""
            names = ", ".join(candidates) or "none"
            raise UserError(
                f"--folder {folder}: expected one decoder.yml (Marian) or a "
                f"config.json (Transformers); found {names}{remedy}"
            )
        name = candidates[0]
    path = folder / name
    return path, read_yaml(path)


def _find_file(folder: Path, settings_file: Path, name: Any) -> Path:
    """Returns the path of a file in the folder that the settings name.

    The directory part of the name is ignored, because it may come from the training
    machine.
    """
    if not isinstance(name, str) or not name:
        raise UserError(
            f"{settings_file}: {name!r:.40} is not a file name; download it again"
        )
    path = folder / re.split(r"[/\\]", name)[-1]
    if not path.is_file():
        raise UserError(
            f"{path}: no such file, but {settings_file.name} names it; copy it into "
            "the folder"
        )
    return path


def _weights_file(
    folder: Path, settings_file: Path, settings: Mapping[str, Any]
) -> Path:
    models = settings.get("models")
    if not isinstance(models, list) or len(models) != 1:
        raise UserError(
            f"{settings_file}: models must name one file, not {models!r:.80}; import "
            "the models of an ensemble one by one"
        )
    path = _find_file(folder, settings_file, models[0])
    if path.suffix != ".npz":
        raise UserError(
            f"{path}: only Marian's .npz format is supported; use the .npz file from "
            "the training"
        )
    return path


def _tables(store: ArrayStore, d_model: int, options: Mapping[str, str]) -> Tables:
    """Returns the embedding tables and the softmax bias."""
    shared = store.take_optional("Wemb", None, d_model)

    def take_or_share(name: str) -> np.ndarray:
        table = store.take_optional(name, None, d_model)
        if table is None:
            table = shared
        return store.take(name) if table is None else table

    source, target = take_or_share("encoder_Wemb"), take_or_share("decoder_Wemb")
    softmax = store.take_optional("decoder_ff_logit_out_Wt", None, d_model)
    transposed = store.take_optional("decoder_ff_logit_out_W", d_model, None)
    if softmax is None:
        softmax = target if transposed is None else transposed.T
    name, rows = "decoder_ff_logit_out_b", len(softmax)
    if options.get("output-omit-bias") == "true" and store.key(name) is None:
        bias = np.zeros(rows, np.float32)
    else:
        bias = store.take(name, 1, rows)[0]
    return Tables(source, target, softmax, bias)


def _vocabularies(
    folder: Path, settings_file: Path, settings: Mapping[str, Any]
) -> Vocabularies:
    """Reads the vocabulary of each side; both sides may have the same file."""
    names = settings.get("vocabs")
    if not isinstance(names, list) or len(names) != 2:
        raise UserError(
            f"{settings_file}: vocabs must name two files, of source and target, not "
            f"{names!r:.80}; models with several sources are not supported"
        )
    source, target = (_find_file(folder, settings_file, name) for name in names)
    is_shared = source == target
    return Vocabularies(_vocabulary(source), None if is_shared else _vocabulary(target))


def _vocabulary(path: Path) -> Vocabulary:
    if path.suffix == ".spm":
        return piece_vocabulary(path)
    if path.suffix not in (".yml", ".yaml"):
        raise UserError(
            f"{path}: only vocabularies in YAML (*.vocab.yml) and SentencePiece models "
            "(*.spm) are supported; use a model with such a vocabulary"
        )
    return order_vocabulary(path, read_yaml(path))
