"""Import of Marian models, in the file format of Marian or Transformers."""
