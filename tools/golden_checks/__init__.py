"""The checks behind `check_golden.py`, a module per kind of file."""
