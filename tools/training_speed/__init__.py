"""What `benchmark_training.py` measures, and how it tells of it."""
