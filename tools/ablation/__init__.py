"""Reproduction of the paper's table 3 at any size."""
