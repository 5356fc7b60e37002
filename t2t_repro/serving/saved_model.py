"""Writes a model as a SavedModel for TensorFlow Serving."""

from pathlib import Path

import tensorflow as tf

from t2t_repro.serving.signatures import ServingModule
from t2t_repro.serving.versions import write_version
from t2t_repro.serving.warmup import write_warmup_requests

EXTRA_FOLDER = "assets.extra"
"""Where a SavedModel keeps what no graph reads."""

MODEL_CARD = "README.md"


def export(
    module: ServingModule,
    export_dir: Path,
    *,
    model_name: str = "model",
    model_card: str = "",
) -> Path:
    """Writes the next version directory ``export_dir/<integer>``.

    Its ``assets.extra`` holds the requests with which a server warms the model up, and
    the model card.

    Args:
        module: what to export.
        export_dir: the folder of all versions; made when missing.
        model_name: the name under which it is served.
        model_card: Markdown.

    Raises:
        UserError: the folder cannot be written.
    """

    def write(folder: Path) -> None:
        write_saved_model(module, folder)
        extra = folder / EXTRA_FOLDER
        extra.mkdir()
        write_warmup_requests(extra, model_name)
        if model_card:
            (extra / MODEL_CARD).write_text(model_card, encoding="utf-8")

    return write_version(export_dir, write)


def write_saved_model(module: ServingModule, folder: Path) -> None:
    """Writes the SavedModel alone.

    Raises:
        OSError: it cannot be written.
    """
    try:
        tf.saved_model.save(module, str(folder), signatures=module.functions)
    except tf.errors.OpError as error:
        raise OSError(str(error).splitlines()[0]) from None
