"""Search for the best translation, or draw some; it knows a step function, no model.

`beam_search.beam_search` and `sampling.sample` run over any `decoder.Decoder` as
TensorFlow graph code, so they work in a `tf.function` and in an exported `tf.Module`.
`constraints.Constraints` says what else is asked of the hypotheses.
"""
