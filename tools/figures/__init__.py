"""Figures of the paper's design choices: computation and drawing."""
