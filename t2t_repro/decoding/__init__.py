"""Search for the best translation; it knows a step function, not the model.

`beam_search.beam_search` runs over any `decoder.Decoder` as TensorFlow graph code,
so it works in a `tf.function` and in an exported `tf.Module`.
"""
