"""Figure 1: the Transformer whole, step by step, several as one, and its attention."""
