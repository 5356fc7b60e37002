"""The lessons of the paper as pictures: what is computed, and how it is drawn."""
