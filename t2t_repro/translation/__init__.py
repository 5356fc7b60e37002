"""Translation of text, and scoring of given translations."""
