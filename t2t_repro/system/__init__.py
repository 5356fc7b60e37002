"""Operating system: atomic writes, locks, GPUs and processor cores."""
