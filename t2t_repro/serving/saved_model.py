"""Writes a translator as a SavedModel for TensorFlow Serving."""

import shutil
from pathlib import Path

import tensorflow as tf

from t2t_repro.errors import UserError
from t2t_repro.translator import Translator


class ServingModule(tf.Module):
    """What is exported: the variables, the vocabulary, and the signatures.

    The model's Python objects stay behind; the graph needs tensorflow_text's
    operations and nothing of this package.

    Args:
        translator: what to export.
    """

    def __init__(self, translator: Translator) -> None:
        super().__init__()
        # The graph captures these; a SavedModel holds what it is told to track.
        self.weights = translator.model_variables
        self.tokenizer = translator.tokenizer
        self._translate = translator.translate

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def serving_default(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Translates sentences.

        Args:
            text: string (batch,), UTF-8.

        Returns:
            ``translations``, string (batch,), and ``scores``, float32 (batch,): log
            probability over length penalty.
        """
        translations, scores = self._translate(text)
        return {"translations": translations, "scores": scores}


def export(translator: Translator, export_dir: Path) -> Path:
    """Writes the next version directory ``export_dir/<integer>``.

    It is written aside and renamed, so a server that polls the folder never sees
    half of a model.

    Args:
        translator: what to export.
        export_dir: the folder of all versions; made when missing.

    Returns:
        The version's directory.

    Raises:
        UserError: the folder cannot be written.
    """
    try:
        export_dir.mkdir(parents=True, exist_ok=True)
        versions = [int(path.name) for path in export_dir.iterdir() if _is_int(path)]
        final = export_dir / str(max(versions, default=0) + 1)
        aside = export_dir / f".writing-{final.name}"
        shutil.rmtree(aside, ignore_errors=True)
        module = ServingModule(translator)
        signatures = {"serving_default": module.serving_default}
        try:
            tf.saved_model.save(module, str(aside), signatures=signatures)
            aside.rename(final)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    except OSError as error:
        raise UserError(f"--export_dir {export_dir}: {error.strerror}") from None
    except tf.errors.OpError as error:
        first = str(error).splitlines()[0]
        raise UserError(f"--export_dir {export_dir}: {first}") from None
    return final


def _is_int(path: Path) -> bool:
    return path.is_dir() and path.name.isdigit()
