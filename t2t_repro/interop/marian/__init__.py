"""Models that Marian trained, in its own files or in those of Transformers."""
