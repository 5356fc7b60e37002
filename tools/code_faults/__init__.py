"""Faults in the code that its tests must notice; see tools/run_code_faults.py."""
