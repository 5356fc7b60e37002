"""Import of tensor2tensor models."""
