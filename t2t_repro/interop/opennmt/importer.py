"""Reads a model of OpenNMT-tf, or a SavedModel that this package exported."""

from collections.abc import Sequence
from pathlib import Path

from t2t_repro.interop import own_saved_model
from t2t_repro.interop.formats.object_graph import ObjectStore
from t2t_repro.interop.opennmt.config import START, read_config
from t2t_repro.interop.opennmt.description import ENDS_SOURCE, described
from t2t_repro.interop.opennmt.model import check, described_model, tables
from t2t_repro.interop.source import Source, with_training
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
        checkpoint: Its prefix, or the folder of checkpoints or of a SavedModel.
        config: Configurations of the training; a later one has priority.
        model: Name in OpenNMT-tf's catalog, or a Python file; None: the folder's.
        auto_config: Whether OpenNMT-tf was called with it.
        source_spm: SentencePiece model that cut the sources before the training.
        target_spm: The same for the targets.
        vocab_file: Vocabulary of a SavedModel that this package exported.

    Raises:
        UserError: A file is missing or damaged, the files are of different models, or
            this package does not have such a model.
    """
    store = ObjectStore(checkpoint)
    if own_saved_model.is_own(store):
        return own_saved_model.read(checkpoint, store, vocab_file)
    folder = checkpoint if checkpoint.is_dir() else checkpoint.parent
    if not config:
        raise UserError(
            f"--checkpoint {checkpoint}: a model of OpenNMT-tf needs --config, "
            "the configuration of its training (data.yml), which names its vocabularies"
        )
    description = described(model, folder)
    ends = auto_config and description.name in ENDS_SOURCE
    settings = read_config(config, folder, ends, auto_config)
    starts_source, ends_source = settings.marks
    vocabularies = settings.vocabularies()
    values = described_model(store)
    check(store, description, values)
    embeddings = tables(store, values["d_model"], vocabularies)
    values |= description.hparams() | embeddings.tying() | settings.search()
    values |= {
        "source_end": ends_source,
        "start_symbol": vocabularies.sides[1].ours.index(START),
        "vocab_size": len(vocabularies.source.ours),
    }
    where = f"{description.where} and {settings.files}"
    hparams = with_training(where, values | {"adam_beta2": 0.998})
    weights = embeddings.variables(vocabularies)
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
            "settings of the search": settings.search_left(),
        },
        pieces_known=vocabularies.pieces_known(models),
    )
