"""Beam search and sampling over the step function of any decoder.

Both are graph code: they work in a `tf.function` and in a SavedModel.
"""
