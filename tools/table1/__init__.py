"""Measurements for the paper's table 1: cost and path length of layers."""
