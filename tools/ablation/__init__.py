"""The paper's table 3: its rows at any size, their runs, and the table."""
