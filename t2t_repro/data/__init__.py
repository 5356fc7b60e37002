"""Text to ids, ids to shards, shards to batches."""
