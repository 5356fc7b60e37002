"""Importer of Marian models from a folder of Marian or Transformers."""

from pathlib import Path
from typing import Any

from t2t_repro.interop.marian.folder import read_marian
from t2t_repro.interop.marian.model import MarianModel
from t2t_repro.interop.marian.transformers_folder import read_transformers
from t2t_repro.interop.marian.transformers_vocabulary import CONFIG
from t2t_repro.interop.source import Source, add_training_defaults
from t2t_repro.interop.stack_weights import take_stacks
from t2t_repro.interop.vocabulary import read_piece_model
from t2t_repro.system.errors import UserError

CONVENTIONS: dict[str, dict[str, Any]] = {
    "marian": {"position": "sinusoid", "norm_epsilon": 1e-9},
    "transformers": {"position": "sinusoid_halves", "norm_epsilon": 1e-5},
}
"""Position encodings and layer-normalization epsilon of each program."""


_PREPROCESSED = (
    "the model reads and writes pieces of subword-nmt: run the download's "
    "preprocess.sh before translating, and its postprocess.sh afterwards"
)


def read(
    folder: Path,
    positions: str = "marian",
    decoder_yml: str | None = None,
    activation: str | None = None,
) -> Source:
    """Reads and checks a model folder.

    Args:
        folder: Folder with the files of Marian or Transformers.
        positions: Program whose position encodings and epsilon the model uses, a key
            of `CONVENTIONS`.
        decoder_yml: Name of the settings file in a Marian folder that has several.
        activation: Variant of GELU, if Marian's options do not determine it.

    Returns:
        The model in this package's form.

    Raises:
        UserError: A file is missing or damaged, the files belong to different models,
            or the model is not supported.
    """
    model = _read_folder(folder, decoder_yml, activation)
    conventions = CONVENTIONS[positions]
    if model.hparams["position"] == "none":
        conventions = conventions | {"position": "none"}
    described = model.hparams | conventions | model.tables.tying() | model.search
    hparams = add_training_defaults(
        f"--folder {folder}",
        described
        | {
            "label_smoothing_form": "marian",
            "tokenizer": "marian",
            "vocab_size": len(model.vocabularies.source.ours),
            "attention_bias": True,
            "softmax_bias": True,
            "target_space_embedding": False,
        },
    )
    weights = model.tables.variables(model.vocabularies, model.store.file)
    weights |= take_stacks(model.store, model.program, hparams)
    model.store.reject_remaining()
    source, target = model.vocabularies.sides
    piece_models = (
        source.model or _piece_model(folder, "source"),
        target.model or _piece_model(folder, "target"),
    )
    return Source(
        program=model.program,
        weights_file=model.store.file,
        hparams=hparams,
        # In Marian's own vocabularies, SentencePiece also cuts out labels.
        tokenizer=model.vocabularies.tokenizer(
            piece_models, labels=source.model is None
        ),
        weights=weights,
        used=model.store.used,
        described=frozenset(described),
        unused=model.unused,
        every_array=model.every_array,
        languages=model.languages,
        pieces_known=model.vocabularies.count_known_pieces(piece_models),
        notes=() if None not in piece_models else (_PREPROCESSED,),
    )


def _read_folder(
    folder: Path, decoder_yml: str | None, activation: str | None
) -> MarianModel:
    if not folder.is_dir():
        raise UserError(f"--folder {folder}: no such folder")
    if not (folder / CONFIG).is_file():
        return read_marian(folder, decoder_yml, activation)
    if decoder_yml or activation:
        raise UserError(
            f"--folder {folder} contains {CONFIG} of Transformers; remove "
            "--decoder_yml and --activation, which are only for Marian's folders"
        )
    return read_transformers(folder)


def _piece_model(folder: Path, side: str) -> bytes | None:
    """Returns the SentencePiece model of a side; None if it uses subword-nmt's BPE."""
    path = folder / f"{side}.spm"
    others = sorted(each.name for each in folder.glob("*.bpe"))
    if path.is_file() or not others:
        return read_piece_model(path)
    if f"{side}.bpe" not in others:
        raise UserError(
            f"{folder / side}.bpe does not exist, but {others[0]} does; copy it from "
            "the download of the model"
        )
    return None
