"""Cleaning of sentence pairs: repairs, rules that drop pairs, splits and a report."""
