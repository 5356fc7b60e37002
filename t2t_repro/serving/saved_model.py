"""Writes a model as a SavedModel for TensorFlow Serving."""

from pathlib import Path

import tensorflow as tf

from t2t_repro.serving.signatures import ServingModule
from t2t_repro.serving.versions import write_version
from t2t_repro.serving.warmup import write_warmup_requests

EXTRA_FOLDER = "assets.extra"
"""Folder of a SavedModel for files that the graph does not use."""

MODEL_CARD = "README.md"


def export(
    module: ServingModule,
    export_dir: Path,
    *,
    model_name: str = "model",
    model_card: str = "",
) -> Path:
    """Writes the next version, ``export_dir/<integer>``, and returns its folder.

    Its ``assets.extra`` contains the server's warm-up requests and the model card.

    Args:
        module: Module to export.
        export_dir: Folder of all versions; created if missing.
        model_name: Name of the model on the server.
        model_card: Model card in Markdown; "" for no card.

    Raises:
        UserError: The folder cannot be written.
    """

    def write(folder: Path) -> None:
        write_saved_model(module, folder)
        extra = folder / EXTRA_FOLDER
        extra.mkdir()
        write_warmup_requests(extra, model_name, module.functions)
        if model_card:
            (extra / MODEL_CARD).write_text(model_card, encoding="utf-8")

    return write_version(export_dir, write)


def write_saved_model(module: ServingModule, folder: Path) -> None:
    """Writes the SavedModel without additional files.

    Raises:
        OSError: The folder cannot be written.
    """
    try:
        tf.saved_model.save(module, str(folder), signatures=module.functions)
    except tf.errors.OpError as error:
        raise OSError(str(error).splitlines()[0]) from None
