"""Text to ids and back, in the graph."""
