"""Files of weights that other programs write: names, shapes, numbers."""
