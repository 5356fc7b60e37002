"""Whole files, locks and cores."""
