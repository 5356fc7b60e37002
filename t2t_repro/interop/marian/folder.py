"""An OPUS-MT download, or another folder of a training with Marian.

Weights are in an npz file with Marian's options in it, as text; `decoder.yml` names it
and the vocabularies (github.com/marian-nmt/marian).
"""

import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from t2t_repro.interop.marian.model import (
    Arrays,
    MarianModel,
    Vocabulary,
    Weights,
    read_piece_model,
    vocabulary,
)
from t2t_repro.interop.marian.options import (
    described_model,
    gelu_of_version,
    options_in,
    read_yaml,
    refuse_others,
    without_meaning,
)
from t2t_repro.system.errors import UserError

# Weights hardly shrink; a file that grows more when it is read is none of weights.
_MOST_UNPACKED = 20


def read_marian(
    folder: Path, decoder_yml: str | None = None, activation: str | None = None
) -> MarianModel:
    """Reads and checks a folder of Marian's.

    Args:
        folder: with the weights, vocabularies and SentencePiece models.
        decoder_yml: the file in it that names them, where there are several.
        activation: what the options cannot tell; None: as they say.

    Raises:
        UserError: something is missing, damaged, of another model, or of a kind that
            is not supported here.
    """
    settings_file, settings = _decoder_settings(folder, decoder_yml)
    weights_file = _weights_file(folder, settings_file, settings)
    arrays = _arrays(weights_file)
    options = options_in(weights_file, arrays)
    refuse_others(weights_file, options)
    weights = Weights(weights_file, arrays)
    hparams = described_model(weights_file, options, activation)
    variables = _variables(weights, hparams)
    tables, bias = _tables(weights, hparams["d_model"], options)
    weights.refuse_left()
    source, target = _vocabularies(folder, settings_file, settings, tables)
    unused = {"options of the training": sorted(without_meaning(options))}
    if activation is not None and (told := gelu_of_version(options)) != activation:
        unused["the GELU of its version of Marian"] = [] if told is None else [told]
    return MarianModel(
        program="Marian",
        weights_file=weights_file,
        weights=variables,
        tables=tables,
        softmax_bias=bias,
        hparams=hparams,
        search={k: v for k, v in settings.items() if isinstance(v, str)},
        source=source,
        target=target,
        source_model=read_piece_model(_pieces_file(folder, "source")),
        target_model=read_piece_model(_pieces_file(folder, "target")),
        used=weights.used,
        unused=unused,
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


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """Reads an npz file without pickles."""
    try:
        # NumPy leaves a damaged file open that it opened itself.
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            if len(set(file.files)) != len(file.files):
                raise ValueError("a name comes twice")
            unpacked = sum(each.file_size for each in file.zip.infolist())
            if unpacked > _MOST_UNPACKED * path.stat().st_size:
                raise ValueError("numbers that take no room")
            return {name: file[name] for name in file.files}
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    except (
        *(ValueError, EOFError, KeyError, AttributeError, OverflowError),
        *(zipfile.BadZipFile, zlib.error, RuntimeError, MemoryError),
    ):
        raise UserError(
            f"{path}: no npz of numbers; it is damaged, or cut off"
        ) from None


def _variables(weights: Weights, hparams: Mapping[str, Any]) -> Arrays:
    """Takes the layers' arrays, under our names."""
    d_model, ends = hparams["d_model"], ""
    if hparams["norm"] == "pre":
        ends = "_pre"
    found: Arrays = {}

    def norm(ours: str, theirs: str, ends: str = ends) -> None:
        for kind in ("scale", "bias"):
            name = f"{theirs}_ln_{kind}{ends}"
            found[f"{ours}/{kind}"] = weights.take(name, 1, d_model)[0]

    def linear(ours: str, theirs: str, number: str, rows: int, columns: int) -> None:
        kernel = weights.take(f"{theirs}_W{number}", rows, columns)
        found[f"{ours}/kernel"] = kernel
        found[f"{ours}/bias"] = weights.take(f"{theirs}_b{number}", 1, columns)[0]

    for side, depth, width in (
        ("encoder", hparams["num_layers"], hparams["d_ff"]),
        (
            "decoder",
            hparams["num_decoder_layers"],
            hparams["decoder_d_ff"] or hparams["d_ff"],
        ),
    ):
        for number in range(depth):
            ours, theirs = f"{side}/layer_{number}", f"{side}_l{number + 1}"
            attentions = [("self_attention", "self")]
            if side == "decoder":
                attentions.append(("cross_attention", "context"))
            for attention, short in attentions:
                for part in ("query", "key", "value", "output"):
                    name = f"{ours}/{attention}/{part}"
                    linear(name, f"{theirs}_{short}", part[0], d_model, d_model)
                residual = f"{ours}/{attention}_residual/layer_norm"
                norm(residual, f"{theirs}_{short}_Wo")
            network = f"{ours}/feed_forward"
            linear(f"{network}/hidden", f"{theirs}_ffn", "1", d_model, width)
            linear(f"{network}/output", f"{theirs}_ffn", "2", width, d_model)
            norm(f"{network}_residual/layer_norm", f"{theirs}_ffn_ffn")
        if hparams["norm"] == "pre":
            norm(f"{side}/final_norm", f"{side}_top", "")
    return found


def _tables(
    weights: Weights, d_model: int, options: Mapping[str, str]
) -> tuple[Arrays, np.ndarray]:
    """Takes the tables, and the softmax's bias."""
    both = weights.take_if_there("Wemb", None, d_model)

    def own(name: str) -> np.ndarray:
        given = weights.take_if_there(name, None, d_model)
        return given if given is not None else _needed(weights, both, name)

    source, target = own("encoder_Wemb"), own("decoder_Wemb")
    softmax = weights.take_if_there("decoder_ff_logit_out_Wt", None, d_model)
    turned = weights.take_if_there("decoder_ff_logit_out_W", d_model, None)
    if softmax is None:
        softmax = target if turned is None else turned.T
    rows = len(softmax)
    if len(target) != rows:
        raise UserError(
            f"{weights.file}: {len(target):,} rows of the target's table, but {rows:,} "
            "of the softmax"
        )
    name = "decoder_ff_logit_out_b"
    if options.get("output-omit-bias") == "true" and name not in weights.left:
        bias = np.zeros(rows, np.float32)
    else:
        bias = weights.take(name, 1, rows)[0]
    return {"input": source, "target": target, "softmax": softmax}, bias


def _needed(weights: Weights, both: np.ndarray | None, name: str) -> np.ndarray:
    return weights.take(name) if both is None else both


def _vocabularies(
    folder: Path,
    settings_file: Path,
    settings: Mapping[str, Any],
    tables: Mapping[str, np.ndarray],
) -> tuple[Vocabulary, Vocabulary | None]:
    """Reads one vocabulary, or two where the settings name two."""
    names = settings.get("vocabs")
    if not isinstance(names, list) or len(names) != 2:
        raise UserError(
            f"{settings_file}: vocabs must name two files, of source and target; "
            f"models of several sources are not supported here: {names!r:.80}"
        )
    files = [_beside(folder, settings_file, name) for name in names]
    source = _vocabulary(files[0], len(tables["input"]))
    if files[0] == files[1]:
        if len(tables["target"]) != len(tables["input"]):
            raise UserError(
                f"{settings_file} names one vocabulary, but the model has tables of "
                f"{len(tables['input']):,} and {len(tables['target']):,} rows"
            )
        return source, None
    return source, _vocabulary(files[1], len(tables["target"]))


def _vocabulary(path: Path, rows: int) -> Vocabulary:
    if path.suffix not in (".yml", ".yaml"):
        raise UserError(
            f"{path}: only vocabularies in YAML (*.vocab.yml) are supported here, not "
            f"{path.suffix or 'others'}"
        )
    return vocabulary(path, read_yaml(path), rows)


def _pieces_file(folder: Path, side: str) -> Path:
    """Returns the SentencePiece model; what else cuts text is refused by name."""
    path = folder / f"{side}.spm"
    if not path.is_file() and (folder / f"{side}.bpe").is_file():
        raise UserError(
            f"{folder / side}.bpe: a model on subword-nmt's pieces is not supported "
            "here; take a download with source.spm and target.spm"
        )
    return path
