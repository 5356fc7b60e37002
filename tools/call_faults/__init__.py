"""Failing and recorded system calls, for `fail_calls.py` and `replay_writes.py`."""
