"""A SavedModel with known outputs."""

from pathlib import Path

import tensorflow as tf


class Echo(tf.Module):
    """Model whose translations are the inputs in upper case."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def translate(self, text):
        """Returns the outputs of an export's default signature."""
        scores = tf.zeros(tf.shape(text)[:1])
        return {"translations": tf.strings.upper(text), "scores": scores}


def export_echo(folder: Path) -> None:
    """Exports the model as a version of an export."""
    echo = Echo()
    tf.saved_model.save(echo, str(folder), signatures=echo.translate)
