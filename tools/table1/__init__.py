"""Table 1 of the paper, measured: what layers cost, and how far signals travel."""
