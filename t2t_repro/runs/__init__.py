"""A model directory: what it is made from, its checkpoints, and their average."""
