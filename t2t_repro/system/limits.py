"""Limits of settings that commands, hyper-parameters and searches have in common."""

MOST_OF_SEARCH = 100_000
"""Maximum of a search's beam size, n-best list, lengths and n-grams."""
