"""Importer of OpenNMT-tf models and of SavedModels that this package exported."""

from collections.abc import Sequence
from pathlib import Path

from t2t_repro.interop import own_saved_model
from t2t_repro.interop.formats.object_graph import ObjectStore
from t2t_repro.interop.opennmt.config import START, read_config
from t2t_repro.interop.opennmt.description import ENDS_SOURCE, read_description
from t2t_repro.interop.opennmt.model import (
    check_description,
    embedding_tables,
    infer_hparams,
)
from t2t_repro.interop.source import Source, add_training_defaults
from t2t_repro.interop.stack_weights import take_stacks
from t2t_repro.system.errors import UserError

_PROGRAM = "OpenNMT-tf"


def read(
    checkpoint: Path,
    config: Sequence[str] = (),
    model: str | None = None,
    auto_config: bool = False,
    source_spm: str | None = None,
    target_spm: str | None = None,
    vocab_file: str | None = None,
) -> Source:
    """Reads and checks a checkpoint or a SavedModel.

    Args:
        checkpoint: Prefix or folder of the checkpoint, or folder of a SavedModel.
        config: Configuration files of the training; later ones override earlier ones.
        model: Name in OpenNMT-tf's catalog or path of a Python file; None selects the
            file in the checkpoint's folder.
        auto_config: Whether the model was trained with `onmt-main --auto_config`.
        source_spm: SentencePiece model of sources tokenized before the training.
        target_spm: SentencePiece model of targets tokenized before the training.
        vocab_file: Vocabulary of a SavedModel that this package exported.

    Returns:
        The model in this package's form.

    Raises:
        UserError: A file is missing or damaged, the files belong to different models,
            or the model is not supported.
    """
    store = ObjectStore(checkpoint)
    if own_saved_model.is_own(store):
        return own_saved_model.read(checkpoint, store, vocab_file)
    folder = checkpoint if checkpoint.is_dir() else checkpoint.parent
    if not config:
        raise UserError(
            f"--checkpoint {checkpoint}: a model of OpenNMT-tf needs --config, the "
            "configuration of its training (data.yml)"
        )
    description = read_description(model, folder)
    ends = auto_config and description.name in ENDS_SOURCE
    settings = read_config(config, folder, ends, auto_config)
    starts_source, ends_source = settings.marks
    vocabularies = settings.vocabularies()
    values = infer_hparams(store)
    check_description(store, description, values)
    embeddings = embedding_tables(store, values["d_model"], vocabularies)
    values |= description.hparams() | embeddings.tying() | settings.search()
    values |= {
        "source_end": ends_source,
        "start_symbol": vocabularies.sides[1].ours.index(START),
        "vocab_size": len(vocabularies.source.ours),
    }
    where = f"{description.where} and {settings.files}"
    hparams = add_training_defaults(where, values | {"adam_beta2": 0.998})
    weights = embeddings.variables(vocabularies, store.file)
    weights |= take_stacks(store, _PROGRAM, hparams)
    store.reject_remaining()
    models = (
        settings.piece_model("source", source_spm),
        settings.piece_model("target", target_spm),
    )
    moments = store.moments()
    return Source(
        program=_PROGRAM,
        weights_file=store.file,
        hparams=hparams,
        tokenizer=vocabularies.tokenizer(
            models, source_start=START if starts_source else None, labels=False
        ),
        weights=weights,
        used=store.used,
        described=frozenset(values),
        unused={
            "optimizer": [f"{moments:,} moments"] if moments else [],
            "settings of the search": settings.unused_search(),
        },
        pieces_known=vocabularies.count_known_pieces(models),
    )
