"""The speed benchmarks: programs that take turns, and what is told of them."""
