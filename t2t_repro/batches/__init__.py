"""Which sentence pairs share a batch, and the tf.data pipeline that makes them."""
