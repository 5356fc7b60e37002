"""Training: loss, schedule, optimizer, step, loop, checkpoints, scoring."""
