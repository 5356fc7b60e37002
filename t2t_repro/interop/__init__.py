"""Bridges to other programs' files."""
