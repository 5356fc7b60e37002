"""Searches for the best translation, or draws some; knows a step function, no model.

`DecodingConfig.run` is graph code: it works in a `tf.function` and in a SavedModel.
"""
