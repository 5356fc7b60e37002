"""Text before and after a model: sentences, placeholders, terms; no model."""
