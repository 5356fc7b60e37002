"""Faults in the code that the tests must detect; see tools/run_code_faults.py."""
