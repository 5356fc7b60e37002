"""Targets of tools/fuzz_readers.py."""
