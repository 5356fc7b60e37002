"""Analysis of trained models: attention and beam search."""
