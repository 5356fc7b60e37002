"""Lines in, translations out, and how probable given translations are."""
