"""A training step compiled and bounded for GPUs that are not there."""
