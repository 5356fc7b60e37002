"""Searches for the best translation, or draws some; knows a step function, no model.

`search.Search.run` is graph code: it works in a `tf.function` and in a SavedModel.
"""
