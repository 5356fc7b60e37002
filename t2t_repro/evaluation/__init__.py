"""Metrics of translations (BLEU, chrF, TER) and parses (PARSEVAL)."""
