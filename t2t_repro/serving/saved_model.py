"""Writes a model as a SavedModel for TensorFlow Serving."""

import shutil
from pathlib import Path

import tensorflow as tf

from t2t_repro.serving.digests import MODEL_CARD
from t2t_repro.serving.signatures import ServingModule
from t2t_repro.serving.versions import EXTRA_FOLDER, TOKENIZER
from t2t_repro.serving.warmup import write_warmup_requests
from t2t_repro.tokenizers.tokenizer import Tokenizer

_TEMPORARY = "variables/variables_temp"


def write_saved_model(
    module: ServingModule,
    folder: Path,
    model_name: str = "model",
    model_card: str = "",
    tokenizer: Tokenizer | None = None,
) -> None:
    """Writes a SavedModel with warm-up requests and model card in ``assets.extra``.

    Args:
        module: Module to export.
        folder: Empty folder; created if missing.
        model_name: Name of the model on the server.
        model_card: Model card in Markdown; "" for no card.
        tokenizer: Tokenizer of a module that takes ids, written to `TOKENIZER`; None
            for a module that takes text.

    Raises:
        OSError: The folder cannot be written.
    """
    extra = folder / EXTRA_FOLDER
    takes_ids = tokenizer is not None
    try:
        tf.saved_model.save(module, str(folder), signatures=module.functions)
        extra.mkdir()
        write_warmup_requests(extra, model_name, module.functions, takes_ids)
    except (tf.errors.OpError, ValueError) as error:  # ValueError: of the fingerprint.
        raise OSError(str(error).splitlines()[0]) from None
    # TensorFlow ignores errors while it deletes its temporary files.
    shutil.rmtree(folder / _TEMPORARY, ignore_errors=True)
    if tokenizer is not None:
        (folder / TOKENIZER).mkdir()
        tokenizer.save_for_clients(folder / TOKENIZER)
    if model_card:
        (extra / MODEL_CARD).write_text(model_card, encoding="utf-8")
