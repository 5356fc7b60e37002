"""Readers of the weight files that other programs write."""
