"""The model: embeddings, stacks and softmax put together."""
