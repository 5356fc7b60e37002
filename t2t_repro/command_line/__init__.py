"""Shared code of the commands: flags, error messages and progress bars."""
