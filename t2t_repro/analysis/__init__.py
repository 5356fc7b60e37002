"""Analysis of trained models: attention, word alignments and beam search."""
