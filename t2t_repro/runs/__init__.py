"""Model directories: metadata, checkpoints, checkpoint averaging."""
