"""Batch composition and the tf.data input pipeline."""
