"""Checks of `check_golden.py`, with one module per kind of file."""
